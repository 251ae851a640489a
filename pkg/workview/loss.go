package workview

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"

	"berth.dev/berth/pkg/eviction"
)

// Loss tells what evictions lose.
type Loss struct {
	Limits eviction.Limits
	// MilliGPUs are the GPUs that a pod asks for.
	MilliGPUs func(*v1.Pod) int64
	// Gang returns the PodGroup of the gang of a pod, nil if it has none, and all of its members, among them the pod.
	// It may be nil.
	Gang func(*v1.Pod) (group metav1.Object, members []*v1.Pod)
}

// Of returns what is known of the work of the pod. What the pod says comes before what its PodGroup says, but for
// checkpoints: that of a gang is one, whichever of its members has told.
func (l *Loss) Of(pod *v1.Pod) eviction.Work {
	var (
		group   metav1.Object
		members []*v1.Pod
	)
	if l.Gang != nil {
		group, members = l.Gang(pod)
	}
	return l.Within(pod, group, Saved(group, append(members[:len(members):len(members)], pod)))
}

// Saved returns when members of a gang, or a single pod, have last saved their work: the newest time that each says,
// and that the PodGroup says, which may be nil.
func Saved(group metav1.Object, members []*v1.Pod) []time.Time {
	var all []time.Time
	if group != nil {
		if at, _ := GroupSaved(group); !at.IsZero() {
			all = append(all, at)
		}
	}
	for _, member := range members {
		if at, _ := PodSaved(member); !at.IsZero() {
			all = append(all, at)
		}
	}
	return all
}

// Within is Of for a pod of a gang whose PodGroup, which may be nil, and checkpoints are known.
func (l *Loss) Within(pod *v1.Pod, group metav1.Object, saved []time.Time) eviction.Work {
	w, _ := PodWork(pod)
	if group != nil {
		of, _ := GroupWork(group)
		for _, d := range durations {
			if own := d.of(&w); *own == 0 {
				*own = *d.of(&of)
			}
		}
	}
	w.Saved = saved
	if pod.Spec.NodeName != "" {
		w.Started = Started(pod)
	}
	if w.MilliGPUs = l.MilliGPUs(pod); w.MilliGPUs == 0 {
		requests := resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true})
		w.MilliCPUs = requests.Cpu().MilliValue()
	}
	return w
}

// Started is when a pod with a node began to run, or when it was created where that is not told.
func Started(pod *v1.Pod) time.Time {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return pod.CreationTimestamp.Time
}
