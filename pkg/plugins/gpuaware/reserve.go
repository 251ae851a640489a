package gpuaware

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/gpu/hamilock"
	"berth.dev/berth/pkg/process/cycles"
)

// promisedKey marks the cycles in which Reserve has promised devices.
const promisedKey fwk.StateKey = "berth.dev/" + Name + "/promised"

type promiseMark struct{}

// Clone returns the mark, which has no content.
func (m promiseMark) Clone() fwk.StateData { return m }

// ReservesOpenly says that what Reserve takes note of shows in the NodeInfo or by AddPod as well, so that a dry run
// need not call it.
func (*Plugin) ReservesOpenly() {}

// Reserve chooses the devices of a pod that goes to a shared node and promises them to it. On other nodes the kubelet
// chooses. In the cycle of a native pod group, the promise holds until the cycle ends, so that the pods of the group
// after this one find what is left.
//
// It turns a pod away that Filter let pass where the promise to another pod has not ended yet, because the informer
// that ends it comes after that of the scheduler, or because it is not known whether that pod was bound. The event that
// would wake the pod may have come by then. So that is an error, after which a pod is tried again soon, and not a lack
// of room.
func (p *Plugin) Reserve(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	simulated := cycle.IsPodGroupSchedulingCycle()
	if simulated && pod.Spec.SchedulingGroup == nil {
		return nil // the dry run of a gang of ours, which puts its pods on copies of the nodes
	}
	s, err := p.state(ctx, cycle, pod)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if s.claims != nil && !simulated {
		p.cluster.claims.Stale()
	}
	switch {
	case !s.request.WantsGPU():
		return nil
	case simulated:
		p.cluster.ledger.simulations.begin(pod.UID, nodeName)
	}
	if s.request.Count == 0 {
		return nil
	}
	info, err := p.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("reading node %s: %w", nodeName, err))
	}
	if s.claims.serves(info) {
		return nil // the allocator chooses
	}
	whole, _ := p.settings.keys.ReadGPUNode(info.Node())
	node := whole.For(&s.request.Request)
	if node.Empty().Mode != gpu.ModeShared {
		return nil
	}
	count := func(keys *gpuview.Keys) *gpu.Inventory {
		inventory := keys.Inventory(node, info, p.cluster.ledger.of, pod.UID)
		p.countAbsent(inventory, node, info, pod.UID)
		return s.live.healthy(inventory, node)
	}
	devices, share, ok := gpu.Choose(count(p.settings.keys.Claimed()), &s.request.Request)
	if !ok && !p.settings.keys.TrustAnnotations {
		devices, share, ok = gpu.Choose(count(p.settings.keys), &s.request.Request)
	}
	if !ok {
		return fwk.AsStatus(fmt.Errorf(
			"reserving GPUs of node %s, which has room but for what a pod may hold that is going or could not be bound: %s",
			nodeName, gpu.Fit(count(p.settings.keys), &s.request.Request)))
	}
	if simulated {
		p.cluster.ledger.promiseSimulated(pod.UID, node.Assign(devices, share))
		return nil
	}
	cycle.Write(promisedKey, promiseMark{})
	p.cluster.ledger.promise(pod.UID, node.Assign(devices, share))
	klog.FromContext(ctx).V(4).Info("Promised GPU devices", "pod", klog.KObj(pod), "node", nodeName, "devices", devices,
		"milliGPU", share.Milli)
	return nil
}

// countAbsent books the promises to pods that the snapshot does not show on the node yet.
func (p *Plugin) countAbsent(inventory *gpu.Inventory, node *gpuview.Node, info fwk.NodeInfo, self types.UID) {
	promised := p.cluster.ledger.on(info.Node().Name)
	if len(promised) == 0 {
		return
	}
	present := sets.New[types.UID](self)
	for _, other := range info.GetPods() {
		present.Insert(other.GetPod().UID)
	}
	for _, uid := range promised {
		if a, ok := p.cluster.ledger.of(uid); ok && !present.Has(uid) {
			inventory.Occupy(a.DevicesOn(node), a.Share)
		}
	}
}

// lockedKey keeps the lock that PreBind took.
const lockedKey fwk.StateKey = "berth.dev/" + Name + "/locked"

// lockMark is the value of that lock.
type lockMark string

// Clone returns the mark, which does not change.
func (m lockMark) Clone() fwk.StateData { return m }

// Unreserve takes the promise back, and the lock of the node.
func (p *Plugin) Unreserve(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, nodeName string) {
	if cycle.IsPodGroupSchedulingCycle() {
		p.cluster.ledger.endSimulated(pod.UID)
		return
	}
	p.cluster.ledger.release(pod.UID)
	p.cluster.claims.Stale()
	p.cluster.keepBound(pod, foundBound(cycle))
	value, err := cycles.Read[lockMark](cycle, lockedKey)
	if err != nil {
		return // PreBind took none
	}
	if err := p.cluster.locks.GiveBack(ctx, pod, nodeName, string(value)); err != nil {
		klog.FromContext(ctx).Error(err, "Giving back the lock of the node failed; it expires",
			"pod", klog.KObj(pod), "node", nodeName, "after", hamilock.Lasts)
	}
}

// PreBindPreFlight skips PreBind for pods about which there is nothing to write. A pod that has to lock its node does
// not do so beside the other plugins: those may take minutes, and others wait for the lock.
func (p *Plugin) PreBindPreFlight(
	ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, nodeName string,
) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	a, ok := p.cluster.ledger.of(pod.UID)
	if !ok || a.Node != nodeName {
		if patch, err := staleAnswersPatch(pod); err != nil {
			return nil, fwk.AsStatus(err)
		} else if patch == nil {
			return nil, fwk.NewStatus(fwk.Skip)
		}
		return &fwk.PreBindPreFlightResult{AllowParallel: true}, nil
	}
	s, err := p.state(ctx, cycle, pod)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	return &fwk.PreBindPreFlightResult{AllowParallel: !s.request.ServedByHAMi(a)}, nil
}

// PreBind writes the promised devices to the pod, in one patch, before the pod is bound: the node's agent reads the
// annotations when the pod arrives there, and the next scheduler after a restart the status. HAMi's device plugin
// serves one pod of its node at a time, the one that the node's lock names: pods wait for it here, each in a binding
// cycle of its own.
func (p *Plugin) PreBind(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	if _, err := cycle.Read(promisedKey); err != nil {
		if s, err := p.state(ctx, cycle, pod); err == nil && s.request.AsksNothing() {
			if patch, err := staleAnswersPatch(pod); err == nil && patch == nil {
				return nil // most pods: their newest version need not be looked up
			}
		}
		return fwk.AsStatus(p.tell(ctx, cycle, pod, staleAnswersPatch))
	}
	promised, ok := p.cluster.ledger.of(pod.UID)
	if !ok || promised.Node != nodeName {
		return fwk.AsStatus(fmt.Errorf("telling pod %s/%s its GPUs: the promise on node %s is gone", pod.Namespace, pod.Name,
			nodeName))
	}
	s, err := p.state(ctx, cycle, pod)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if s.request.ServedByHAMi(promised) {
		value, err := p.cluster.locks.Take(ctx, pod, nodeName)
		if err != nil {
			return fwk.AsStatus(err)
		}
		cycle.Write(lockedKey, lockMark(value))
	}
	return fwk.AsStatus(p.tell(ctx, cycle, pod, func(newest *v1.Pod) ([]byte, error) {
		return assignmentPatch(newest, &s.request, promised, time.Now())
	}))
}
