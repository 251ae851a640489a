package gpuaware

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/signals"
)

// live is what was measured of GPUs by the start of one cycle, so that all nodes are judged alike.
type live struct {
	snapshot *signals.GPUSnapshot
	now      time.Time
}

// healthy is a node's inventory without the GPUs that are measured to be faulty.
func (l live) healthy(inventory *gpu.Inventory, node *gpuview.Node) *gpu.Inventory {
	if l.snapshot == nil || !inventory.HasGPU() || !node.NVIDIA() {
		return inventory
	}
	faults := l.snapshot.Faults(node.Node.Name, l.now)
	if len(faults) == 0 {
		return inventory
	}
	var at []int
	others := 0
	for n, f := range faults {
		switch i := deviceIndex(f.GPUID, node); {
		case i < 0:
			if !slices.ContainsFunc(faults[:n], func(known signals.Fault) bool { return known.GPUID == f.GPUID }) {
				others++
			}
		case !slices.Contains(at, i): // one GPU may have several faults
			at = append(at, i)
		}
	}
	return inventory.WithFaulty(at, others)
}

// deviceIndex is the index of the GPU of a series, -1 when unknown.
func deviceIndex(id signals.GPUID, node *gpuview.Node) int {
	if i := slices.Index(node.UUIDs(), id.UUID); i >= 0 && id.UUID != "" {
		return i
	}
	return id.Index
}

// placement is what was measured of the GPUs that the pod would get.
func (l live) placement(v *view, info fwk.NodeInfo, r *gpu.Request, assignments gpuview.AssignmentOf) gpu.Placement {
	inv, node := v.of(r)
	if l.snapshot == nil || r.Count == 0 || !node.NVIDIA() {
		return gpu.Placement{}
	}
	used, known := l.snapshot.Use(node.Node.Name, l.now)
	if !known {
		return gpu.Placement{}
	}
	if !inv.TimeSliced() && inv.Mode != gpu.ModeShared {
		return gpu.Placement{ForeignMilli: foreign(used, inv)}
	}
	if !inv.TimeSliced() && r.Whole() {
		return gpu.Placement{}
	}
	devices, _, ok := gpu.Choose(inv, r)
	if inv.TimeSliced() || !ok {
		devices = nil // the kubelet picks: the mean of the node counts
	}
	at := gpu.Placement{FullMilli: full(used, node, devices)}
	if inv.TimeSliced() {
		at.BusyMilli = used.MeanMilli
		return at
	}
	sum := 0
	for _, d := range devices {
		sum += min(gpu.WholeMilli, measured(used, node, d)+assignedSince(info, used.Time, d, node, assignments))
	}
	at.BusyMilli = sum / max(1, len(devices))
	return at
}

// foreign is how much busier a node is than its pods account for, per GPU in thousandths: something else runs there, or
// the node offers more GPUs than it has.
func foreign(used signals.Use, inv *gpu.Inventory) int {
	healthy := inv.Healthy()
	if healthy == 0 || len(used.GPUs) == 0 {
		return 0
	}
	assigned := healthy*gpu.WholeMilli - inv.FreeMilli()
	return max(0, min(gpu.WholeMilli, used.MeanMilli-assigned/healthy))
}

// full is the part of the framebuffer that is in use, in thousandths, of these devices or, without any, of all.
func full(measured signals.Use, node *gpuview.Node, devices []int) int {
	var used, all int64
	for _, g := range measured.GPUs {
		if len(devices) == 0 || slices.Contains(devices, deviceIndex(g.GPUID, node)) {
			used += g.UsedMiB
			all += g.UsedMiB + g.FreeMiB
		}
	}
	if all == 0 {
		return 0
	}
	return int(used * gpu.WholeMilli / all)
}

// measured is the utilization of one device; the node's mean if the series does not name the device.
func measured(used signals.Use, node *gpuview.Node, device int) int {
	for _, g := range used.GPUs {
		if deviceIndex(g.GPUID, node) == device {
			return g.Milli
		}
	}
	return used.MeanMilli
}

// assignedSince sums the shares of a device of pods that were scheduled after a time.
func assignedSince(info fwk.NodeInfo, since time.Time, device int, node *gpuview.Node,
	assignments gpuview.AssignmentOf) int {
	sum := 0
	for _, other := range info.GetPods() {
		pod := other.GetPod()
		a, ok := assignments(pod.UID)
		if ok && a.Node == node.Node.Name && slices.Contains(a.DevicesOn(node), device) && scheduledAfter(pod, since) {
			sum += a.Share.Milli
		}
	}
	return sum
}

// scheduledAfter reports whether the pod was bound after a time. One that is not bound yet will be.
func scheduledAfter(pod *v1.Pod, since time.Time) bool {
	at, bound := podview.ScheduledAt(pod)
	return !bound || at.After(since)
}

// faultsInterval is how often the plugin looks whether faults of GPUs are over.
const faultsInterval = 5 * time.Second

// retryAfterFaults tries the pending GPU pods of the profile again whenever a fault of a GPU is over, until ctx ends.
// No event of the cluster says so: nothing but the next measurement does.
func (p *Plugin) retryAfterFaults(ctx context.Context) {
	var earlier, before map[string]int
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		now := p.signals.Snapshot().CountFaults(time.Now())
		// Pods are tried at this look and at the next: one may be in a scheduling cycle, with what was known before.
		if anyOver(before, now) || anyOver(earlier, before) {
			process.Wake(klog.FromContext(ctx), p.handle, "Faults of GPUs are over", func(pod *v1.Pod) bool {
				request, err := p.settings.request(pod)
				return err == nil && request.WantsGPU() && !podview.Finished(pod) &&
					pod.Spec.SchedulerName == p.handle.ProfileName()
			})
		}
		earlier, before = before, now
	}, faultsInterval)
}

// anyOver reports whether a node has fewer faults than before.
func anyOver(before, now map[string]int) bool {
	for node, faults := range before {
		if now[node] < faults {
			return true
		}
	}
	return false
}
