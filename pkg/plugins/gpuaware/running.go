package gpuaware

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/claimview"
	"berth.dev/berth/pkg/podview"
)

// running is what runs on a node, without pods that belong to the node. It is immutable.
type running struct {
	pods []runningPod
	// cpuMilli is the CPU of pods without GPUs.
	cpuMilli int64
}

// runningPod is a pod with GPUs.
type runningPod struct {
	pod        *v1.Pod
	shape      gpu.Shape
	controller string
}

// readRunning reads what runs on the node of a view. before is what ran there with the same node and devices, nil if
// that is not known; its pods need not be read again.
func (v *views) readRunning(fresh *view, info fwk.NodeInfo, claimable *claimview.State, before *running) *running {
	now := &running{}
	if before == nil {
		before = &running{}
	}
	for _, podInfo := range info.GetPods() {
		pod := podInfo.GetPod()
		if podview.BelongsToNode(pod) {
			continue
		}
		if at := slices.IndexFunc(before.pods, func(p runningPod) bool { return p.pod == pod }); at >= 0 {
			now.pods = append(now.pods, before.pods[at])
			continue
		}
		shape, counts := v.shapeOf(fresh, pod, claimable)
		switch {
		case !counts:
		case shape.Count > 0:
			now.pods = append(now.pods, runningPod{pod, shape, controllerOf(pod)})
		default:
			now.cpuMilli += podInfo.CalculateResource().Resource.GetMilliCPU()
		}
	}
	return now
}

// shapeOf reads the shape of a pod on the node of a view. Pods that claim GPUs by annotations which this scheduler has
// not assigned do not count.
func (v *views) shapeOf(on *view, pod *v1.Pod, claimable *claimview.State) (shape gpu.Shape, counts bool) {
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

// controllerOf names the controller of the pod, empty for none. The Jobs of a CronJob and the ReplicaSets of a
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
	same := 0 // most changes are at the end
	for same < min(len(before.pods), len(after.pods)) && before.pods[same].same(after.pods[same]) {
		same++
	}
	gone, come := before.pods[same:], after.pods[same:]
	for _, p := range gone {
		if !slices.ContainsFunc(come, p.same) {
			h.Add(p.shape, p.controller, -1)
		}
	}
	for _, p := range come {
		if !slices.ContainsFunc(gone, p.same) {
			h.Add(p.shape, p.controller, 1)
		}
	}
	h.AddBeside(after.cpuMilli - before.cpuMilli)
}

// same reports whether the pods count alike in a histogram.
func (p *runningPod) same(o runningPod) bool {
	return o.pod.UID == p.pod.UID && o.shape == p.shape && o.controller == p.controller
}
