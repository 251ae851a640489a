package gpuaware

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/kubeview"
	"berth.dev/berth/pkg/signals"
)

// live is what was measured of the GPUs as it stood at the start of one cycle, so that all nodes are judged alike.
type live struct {
	snapshot *signals.GPUSnapshot
	now      time.Time
}

// inventory is a node's inventory without the GPUs that are measured to be faulty.
func (l live) inventory(inventory *gpu.Inventory, node *kubeview.GPUNode) *gpu.Inventory {
	if l.snapshot == nil || !inventory.HasGPU() {
		return inventory
	}
	return l.healthy(inventory, node)
}

func (l live) healthy(inventory *gpu.Inventory, node *kubeview.GPUNode) *gpu.Inventory {
	if l.snapshot == nil || !node.NVIDIA() {
		return inventory
	}
	faults := l.snapshot.Faults(node.Node.Name, l.now)
	if len(faults) == 0 {
		return inventory
	}
	var at []int
	elsewhere := 0
	for n, f := range faults {
		switch i := deviceIndex(f.GPUID, node); {
		case i < 0:
			if !slices.ContainsFunc(faults[:n], func(known signals.Fault) bool { return known.GPUID == f.GPUID }) {
				elsewhere++
			}
		case !slices.Contains(at, i): // one GPU may have several faults
			at = append(at, i)
		}
	}
	return inventory.WithFaulty(at, elsewhere)
}

// deviceIndex is the index of a GPU by what a series tells of it, -1 when it does not.
func deviceIndex(id signals.GPUID, node *kubeview.GPUNode) int {
	if i := slices.Index(node.UUIDs(), id.UUID); i >= 0 && id.UUID != "" {
		return i
	}
	return id.Index
}

// busy is the utilisation, in thousandths, of the GPUs that the pod would share with others: as measured, plus what was
// promised since to pods that the measurement has not seen, and weighed by its age. It is 0 for pods that get GPUs of
// their own, and for all nodes while nothing is known.
func (l live) busy(v *view, info fwk.NodeInfo, r *gpu.Request, promised kubeview.AssignmentOf) int {
	inv, _ := v.of(r)
	if l.snapshot == nil || r.Count == 0 || !inv.TimeSliced() && (r.Whole() || inv.Mode != gpu.ModeShared) {
		return 0
	}
	used, weight := l.snapshot.Utilisation(v.node.Node.Name, l.now)
	if weight == 0 {
		return 0
	}
	if inv.TimeSliced() {
		return int(weight * float64(min(gpu.WholeMilli, used.MeanMilli)))
	}
	devices, _, ok := gpu.Choose(inv, r)
	if !ok {
		return 0
	}
	sum := 0
	for _, d := range devices {
		sum += min(gpu.WholeMilli, measured(used, v.node, d)+promisedSince(info, used.Time, d, v.node, promised))
	}
	return int(weight * float64(sum) / float64(len(devices)))
}

// measured is the utilisation of one device; the node's mean where series do not tell devices apart.
func measured(used signals.Utilisation, node *kubeview.GPUNode, device int) int {
	for _, g := range used.GPUs {
		if deviceIndex(g.GPUID, node) == device {
			return g.Milli
		}
	}
	return used.MeanMilli
}

// promisedSince sums the shares of a device that pods scheduled after a time hold.
func promisedSince(info fwk.NodeInfo, since time.Time, device int, node *kubeview.GPUNode, promised kubeview.AssignmentOf) int {
	sum := 0
	for _, other := range info.GetPods() {
		pod := other.GetPod()
		if a, ok := promised(pod.UID); ok && slices.Contains(a.Devices, device) && scheduledAfter(pod, since) && a.Node == node.Node.Name {
			sum += a.Share.Milli
		}
	}
	return sum
}

// scheduledAfter reports whether the pod was bound after a time. One that is not bound yet will be.
func scheduledAfter(pod *v1.Pod, since time.Time) bool {
	at, bound := kubeview.ScheduledAt(pod)
	return !bound || at.After(since)
}
