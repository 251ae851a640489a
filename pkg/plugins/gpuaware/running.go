package gpuaware

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/claimview"
	"berth.dev/berth/pkg/podview"
)

// running is what runs on a node, but for pods that belong to the node itself. It is immutable.
type running struct {
	pods []runningPod
	// cpuMilli is the CPU of pods without GPUs.
	cpuMilli int64
}

// runningPod is a pod with GPUs.
type runningPod struct {
	pod        *v1.Pod
	class      gpu.Shape
	controller string
}

// readRunning reads what runs on the node of a view. Before is what ran there with the same node and devices, nil if
// that is not known.
func (v *views) readRunning(fresh *view, info fwk.NodeInfo, claimable *claimview.State, before *running) *running {
	now := &running{}
	for _, podInfo := range info.GetPods() {
		pod := podInfo.GetPod()
		if podview.BelongsToNode(pod) {
			continue
		}
		if before != nil {
			if at := before.find(len(now.pods), func(p *runningPod) bool { return p.pod == pod }); at >= 0 {
				now.pods = append(now.pods, before.pods[at])
				continue
			}
		}
		class, counts := v.classOf(fresh, pod, claimable)
		switch {
		case !counts:
		case class.Count > 0:
			now.pods = append(now.pods, runningPod{pod, class, controllerOf(pod)})
		default:
			now.cpuMilli += podInfo.CalculateResource().Resource.GetMilliCPU()
		}
	}
	return now
}

// find returns the index of the pod that is such, -1 for none. It looks at a likely place first.
func (r *running) find(likely int, such func(*runningPod) bool) int {
	if likely < len(r.pods) && such(&r.pods[likely]) {
		return likely
	}
	for i := range r.pods {
		if such(&r.pods[i]) {
			return i
		}
	}
	return -1
}

// classOf reads as what a pod on the node of a view counts. A pod that claims GPUs by annotations which this scheduler
// has not assigned counts for nothing.
func (v *views) classOf(on *view, pod *v1.Pod, claimable *claimview.State) (class gpu.Shape, counts bool) {
	claims := len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil
	if !claims && !v.keys.MayUseGPU(pod) {
		return gpu.Shape{}, true // most pods
	}
	request, err := v.keys.PodGPURequest(pod)
	if err != nil || v.keys.Unassigned(pod) != "" {
		return gpu.Shape{}, false
	}
	r := &request.Request
	if !r.WantsGPU() && claims {
		allocated := claimable.Allocated(pod, on.node.Node.Name)
		r.Count, r.Milli, r.Slices = allocated.Count, allocated.Milli, allocated.Slices
	}
	inventory, _ := on.of(r)
	// A share that is given by memory counts against that of the node's GPUs.
	return gpu.ShapeOf(r, inventory.MemMiB), true
}

// controllerOf names what has made the pod, empty for nothing. The Jobs of a CronJob and the ReplicaSets of a
// Deployment, which differ in what follows the last hyphen, are one controller.
func controllerOf(pod *v1.Pod) string {
	owner := podview.ControllerOf(pod)
	if owner == nil {
		return ""
	}
	name := owner.Name
	if at := strings.LastIndexByte(name, '-'); at > 0 && (owner.Kind == "Job" || owner.Kind == "ReplicaSet") {
		name = name[:at]
	}
	return pod.Namespace + "/" + owner.Kind + "/" + name
}

// replace counts in a histogram what has changed on a node. Either may be nil, for nothing.
func replace(h *gpu.Histogram, before, after *running) {
	if before == nil {
		before = &running{}
	}
	if after == nil {
		after = &running{}
	}
	addMissing(h, before, after, -1)
	addMissing(h, after, before, 1)
	h.AddBeside(after.cpuMilli - before.cpuMilli)
}

// addMissing adds n for each of the pods that others lack.
func addMissing(h *gpu.Histogram, of, others *running, n int) {
	for i := range of.pods {
		p := &of.pods[i]
		same := func(o *runningPod) bool {
			return o.pod.UID == p.pod.UID && o.class == p.class && o.controller == p.controller
		}
		if others.find(i, same) < 0 {
			h.Add(p.class, p.controller, n)
		}
	}
}
