package guard

import (
	"fmt"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/lab/replay"
	"berth.dev/berth/pkg/lab/trace"
)

const (
	gpusPerNode = 8
	namespace   = "guard"
)

// nodeName is the name of the i-th node.
func nodeName(i int) string { return fmt.Sprintf("node-%04d", i) }

// clusterOf is a cluster of n nodes in three zones, of three models if they have GPUs, and the jobs that arrive.
func clusterOf(nodes, gpus int, jobs []trace.Job) replay.Input {
	var fleet []trace.Node
	for i := range nodes {
		node := trace.Node{
			Name: nodeName(i), CPUMilli: 96_000, MemoryMiB: 1100 << 10, GPUs: gpus,
			Zone: fmt.Sprintf("zone-%d", i%3), MicroDollarsPerHour: 27_450_000,
		}
		if gpus > 0 {
			node.Model = []string{"NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-L40S"}[i%3]
		}
		fleet = append(fleet, node)
	}
	return replay.NewInput("cluster", fleet, jobs)
}

// pendingPod is a pod of one container for the scheduler's profile. It is pending, as each pod of an API server:
// without a phase the informers of pods that have ended would be told of it.
func pendingPod(namespace, name, profile string, requests v1.ResourceList) *v1.Pod {
	limits := v1.ResourceList{}
	for resourceName, q := range requests {
		if resourceName != v1.ResourceCPU && resourceName != v1.ResourceMemory {
			limits[resourceName] = q
		}
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1.PodSpec{SchedulerName: profile, AutomountServiceAccountToken: ptr.To(false), Containers: []v1.Container{
			{Name: "c", Image: "c", Resources: v1.ResourceRequirements{Requests: requests, Limits: limits}},
		}},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
}

// gpuPod is a pending pod that requests GPUs.
func gpuPod(profile, name string, gpus int64) *v1.Pod {
	pod := pendingPod(namespace, name, profile, v1.ResourceList{
		v1.ResourceCPU:    *resource.NewQuantity(gpus, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(gpus<<32, resource.BinarySI),
		"nvidia.com/gpu":  *resource.NewQuantity(gpus, resource.DecimalSI),
	})
	pod.Labels = map[string]string{"app": "train"}
	return pod
}

// plainPod is a pending pod that requests no GPU, as those of upstream's SchedulingBasic.
func plainPod(profile, name string) *v1.Pod {
	return pendingPod(namespace, name, profile, v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(100, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(500<<20, resource.BinarySI),
	})
}

// plain are pods that request no GPU.
func plain(profile string, n int) []runtime.Object {
	pods := make([]runtime.Object, n)
	for i := range pods {
		pods[i] = plainPod(profile, fmt.Sprintf("pod-%06d", i))
	}
	return pods
}

// singles are pods of one GPU, all alike or no two alike.
func singles(profile string, n int, alike bool) []runtime.Object {
	pods := make([]runtime.Object, n)
	for i := range pods {
		pod := gpuPod(profile, fmt.Sprintf("pod-%06d", i), 1)
		if !alike {
			requests := pod.Spec.Containers[0].Resources.Requests
			requests[v1.ResourceCPU] = *resource.NewMilliQuantity(1000+int64(i), resource.DecimalSI)
		}
		pods[i] = pod
	}
	return pods
}

// gangs are the PodGroups of gangs and their members.
func gangs(profile string, n, members int, gpus int64) []runtime.Object {
	var objects []runtime.Object
	for g := range n {
		name := fmt.Sprintf("gang-%03d", g)
		var pods []*v1.Pod
		for m := range members {
			pods = append(pods, gpuPod(profile, fmt.Sprintf("%s-%03d", name, m), gpus))
		}
		objects = append(objects, gangOf(name, pods)...)
	}
	return objects
}

// gangOf are the PodGroup of a gang and its members.
func gangOf(name string, pods []*v1.Pod) []runtime.Object {
	objects := []runtime.Object{read.NewPodGroup(namespace, name, len(pods))}
	for _, pod := range pods {
		read.Join(pod, name)
		objects = append(objects, pod)
	}
	return objects
}

// running are pods of one GPU that have their node, as evenly as possible on the first nodes.
func running(n, on int) []runtime.Object {
	pods := make([]runtime.Object, n)
	for i := range pods {
		pod := gpuPod(v1.DefaultSchedulerName, fmt.Sprintf("running-%06d", i), 1)
		pod.Labels["app"] = fmt.Sprintf("app-%d", i%50)
		pod.Spec.NodeName, pod.Status.Phase = nodeName(i%on), v1.PodRunning
		pods[i] = pod
	}
	return pods
}

// queue are jobs that arrive faster than a small cluster can run them. Each fourth is a gang, or has the pods of one.
func queue(gangs bool) []trace.Job {
	random := rand.New(rand.NewPCG(1, 1))
	var jobs []trace.Job
	for i := range 60 {
		job := trace.Job{Name: fmt.Sprintf("job-%03d", i), Arrival: time.Duration(i) * 5 * time.Second,
			Pods: 1, GPUs: 1, GPUMilli: 1000}
		if i%4 == 0 {
			job.Pods, job.GPUs, job.Gang = 2<<random.IntN(4), gpusPerNode, gangs
		}
		job.Duration = time.Duration(120+random.IntN(360)) * time.Second
		job.CPUMilli, job.MemoryMiB = int64(job.GPUs)*4000, int64(job.GPUs)<<14
		jobs = append(jobs, job)
	}
	return jobs
}

// begin is the CPU time of a start where gangs wait and one of them can run: enough nodes are free for it, and too few
// for another. Stock, which knows no gangs, fills these nodes, unless the pods are behind a gate, so that it reads them
// and tries none.
func (w *world) begin(waiting, members int, gated bool) (float64, error) {
	free := 2*members - 2
	taken := w.nodes - free
	pending := waiting*members - members
	if w.contender == stock {
		pending = max(0, waiting*members-free)
	}
	arriving := gangs(w.profile(), waiting, members, gpusPerNode)
	if gated {
		pending = waiting * members
		for _, object := range arriving {
			if pod, is := object.(*v1.Pod); is {
				pod.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "berth.dev/benchmark"}}
			}
		}
	}
	objects := append(running(2*taken, taken), arriving...)
	if err := w.create(objects...); err != nil {
		return 0, err
	}
	return w.cpu(pending, w.run)
}
