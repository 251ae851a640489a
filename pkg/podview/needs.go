package podview

import (
	"strings"

	v1 "k8s.io/api/core/v1"
)

// PodImages returns the names of the pod's images in the form in which nodes list them, with a tag.
func PodImages(pod *v1.Pod) []string {
	names := make([]string, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	add := func(name string) {
		if strings.LastIndexByte(name, ':') <= strings.LastIndexByte(name, '/') {
			name += ":latest"
		}
		names = append(names, name)
	}
	for i := range pod.Spec.InitContainers {
		add(pod.Spec.InitContainers[i].Image)
	}
	for i := range pod.Spec.Containers {
		add(pod.Spec.Containers[i].Image)
	}
	for i := range pod.Spec.Volumes {
		if image := pod.Spec.Volumes[i].Image; image != nil {
			add(image.Reference)
		}
	}
	return names
}

// PodNeeds returns the CPU, in thousandths of a core, and the bytes of memory and ephemeral storage that a pod
// requests.
func PodNeeds(pod *v1.Pod) (milliCPU, memory, storage int64) {
	requests := Requests(pod)
	return requests.Cpu().MilliValue(), requests.Memory().Value(), requests.StorageEphemeral().Value()
}
