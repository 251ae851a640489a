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
	"berth.dev/berth/pkg/process"
)

const bindingKey fwk.StateKey = "berth.dev/" + Name + "/binding"

// binding is what Reserve and PreBind have done for a pod in its cycle.
type binding struct {
	// assigned reports that Reserve has assigned devices.
	assigned bool
	// lock is the value of the lock that PreBind has acquired, empty for none.
	lock string
	// bound is the pod if PreBind has found it bound, else nil.
	bound *v1.Pod
}

// Clone returns a copy.
func (b *binding) Clone() fwk.StateData {
	c := *b
	return &c
}

// bindingOf returns the binding of the cycle.
func bindingOf(cycle fwk.CycleState) *binding {
	b, err := process.Read[*binding](cycle, bindingKey)
	if err != nil {
		b = &binding{}
		cycle.Write(bindingKey, b)
	}
	return b
}

// ReservesOpenly reports that a dry run need not call Reserve: what it records shows in the NodeInfo or by AddPod, too.
func (*Plugin) ReservesOpenly() {}

// Reserve assigns devices to a pod that goes to a shared node. On other nodes the kubelet chooses. In the cycle of a
// native pod group, the devices stay assigned until the cycle ends, so that the later pods of the group find what is
// left.
func (p *Plugin) Reserve(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	simulated := cycle.IsPodGroupSchedulingCycle()
	if simulated && pod.Spec.SchedulingGroup == nil {
		return nil // the dry run of a gang, which adds its pods to copies of the NodeInfos
	}
	s, err := p.state(ctx, cycle, pod)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if s.claims != nil && !simulated {
		p.shared.claims.Stale()
	}
	switch {
	case !s.request.WantsGPU():
		return nil
	case simulated:
		p.shared.ledger.simulations.set(pod.UID, nodeName, false)
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
	assignment, err := p.choose(s, node, info, pod.UID)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if simulated {
		p.shared.ledger.assignSimulated(pod.UID, assignment)
		return nil
	}
	bindingOf(cycle).assigned = true
	p.shared.ledger.assign(pod.UID, assignment)
	klog.FromContext(ctx).V(4).Info("Assigned GPU devices", "pod", klog.KObj(pod), "node", nodeName, "devices",
		assignment.Devices, "milliGPU", assignment.Share.Milli)
	return nil
}

// choose chooses devices of a shared node, those that no pod claims to use if possible.
//
// It fails for a pod that Filter let pass if the devices are still assigned to another pod, because the informer that
// releases them is behind that of the scheduler, or because it is not known whether that pod was bound. The event that
// would wake this pod may have passed by then. So this is an error, after which the pod is tried again soon, and not a
// rejection.
func (p *Plugin) choose(s *podState, node *gpuview.Node, info fwk.NodeInfo, uid types.UID) (gpuview.Assignment, error) {
	keys := p.settings.keys
	count := func(keys *gpuview.Keys) *gpu.Inventory {
		inventory := keys.Inventory(node, info, p.shared.ledger.of, uid)
		p.countAbsent(inventory, node, info, uid)
		return s.live.healthy(inventory, node)
	}
	devices, share, ok := gpu.Choose(count(keys.Claimed()), &s.request.Request)
	if !ok && !keys.TrustAnnotations {
		devices, share, ok = gpu.Choose(count(keys), &s.request.Request)
	}
	if !ok {
		return gpuview.Assignment{}, fmt.Errorf(
			"assigning GPUs of node %s, which are still assigned to a pod that is ending or may be bound: %s",
			info.Node().Name, gpu.Fit(count(keys), &s.request.Request))
	}
	return node.Assign(devices, share), nil
}

// countAbsent counts the devices of pods that the snapshot does not show on the node yet.
func (p *Plugin) countAbsent(inventory *gpu.Inventory, node *gpuview.Node, info fwk.NodeInfo, self types.UID) {
	pods := p.shared.ledger.on(info.Node().Name)
	if len(pods) == 0 {
		return
	}
	present := sets.New[types.UID](self)
	for _, other := range info.GetPods() {
		present.Insert(other.GetPod().UID)
	}
	for _, uid := range pods {
		if a, ok := p.shared.ledger.of(uid); ok && !present.Has(uid) {
			inventory.Occupy(a.DevicesOn(node), a.Share)
		}
	}
}

// Unreserve releases the devices, and the lock of the node.
func (p *Plugin) Unreserve(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, nodeName string) {
	if cycle.IsPodGroupSchedulingCycle() {
		p.shared.ledger.endSimulated(pod.UID)
		return
	}
	p.shared.ledger.release(pod.UID)
	p.shared.claims.Stale()
	b := bindingOf(cycle)
	p.shared.keepBound(pod, b.bound)
	if b.lock == "" {
		return
	}
	if err := p.shared.locks.Release(ctx, pod, nodeName, b.lock); err != nil {
		klog.FromContext(ctx).Error(err, "Releasing the lock of the node failed; it expires",
			"pod", klog.KObj(pod), "node", nodeName, "after", hamilock.Expiry)
	}
}

// PreBindPreFlight skips PreBind for pods about which there is nothing to write. A pod that has to lock its node does
// not run in parallel with other plugins: those may take minutes, while other pods wait for the lock.
func (p *Plugin) PreBindPreFlight(
	ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, nodeName string,
) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	a, ok := p.shared.ledger.of(pod.UID)
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

// PreBind writes the devices to the pod in one patch, before the pod is bound: the node's agent reads the annotations
// when the pod arrives, and a scheduler that is restarted reads the status. HAMi's device plugin serves one pod of its
// node at a time, the one that the node's lock names: pods wait for it here, each in a binding cycle of its own.
func (p *Plugin) PreBind(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	if !bindingOf(cycle).assigned {
		if s, err := p.state(ctx, cycle, pod); err == nil && s.request.AsksNothing() {
			if patch, err := staleAnswersPatch(pod); err == nil && patch == nil {
				return nil // most pods: their newest version need not be read
			}
		}
		return fwk.AsStatus(p.writeStatus(ctx, cycle, pod, staleAnswersPatch))
	}
	assignment, ok := p.shared.ledger.of(pod.UID)
	if !ok || assignment.Node != nodeName {
		return fwk.AsStatus(fmt.Errorf("writing the GPUs of pod %s/%s: no device of node %s is assigned to it any more",
			pod.Namespace, pod.Name, nodeName))
	}
	s, err := p.state(ctx, cycle, pod)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if s.request.ServedByHAMi(assignment) {
		lock, err := p.shared.locks.Acquire(ctx, pod, nodeName)
		if err != nil {
			return fwk.AsStatus(err)
		}
		bindingOf(cycle).lock = lock
	}
	return fwk.AsStatus(p.writeStatus(ctx, cycle, pod, func(newest *v1.Pod) ([]byte, error) {
		return assignmentPatch(newest, &s.request, assignment, time.Now())
	}))
}
