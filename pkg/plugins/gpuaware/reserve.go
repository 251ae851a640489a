package gpuaware

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/kubeview"
)

// promisedKey marks the cycles in which Reserve has promised devices.
const promisedKey fwk.StateKey = "berth.dev/" + Name + "/promised"

type promiseMark struct{}

// Clone returns the mark, which has no content.
func (m promiseMark) Clone() fwk.StateData { return m }

// Reserve chooses the devices of a pod that goes to a shared node and promises them to it. On other nodes the kubelet
// chooses.
func (p *Plugin) Reserve(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	if cycle.IsPodGroupSchedulingCycle() {
		return nil // a simulation promises nothing
	}
	s, err := p.state(ctx, cycle, pod)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if s.claims != nil {
		p.cluster.claims.Stale()
	}
	if s.request.Count == 0 {
		return nil
	}
	info, err := p.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("reading node %s: %w", nodeName, err))
	}
	node, _ := p.settings.keys.ReadGPUNode(info.Node())
	if node.Empty().Mode != gpu.ModeShared {
		return nil
	}
	inventory := p.settings.keys.Inventory(node, info, p.cluster.ledger.of, pod.UID)
	p.countAbsent(inventory, info, pod.UID)
	inventory = s.live.healthy(node, inventory)
	devices, share, ok := gpu.Choose(inventory, &s.request.Request)
	if !ok {
		return fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("choosing devices on node %s: %s", nodeName, gpu.Fit(inventory, &s.request.Request)))
	}
	cycle.Write(promisedKey, promiseMark{})
	p.cluster.ledger.promise(pod.UID, kubeview.Assignment{Node: nodeName, Devices: devices, Share: share, UUIDs: node.UUIDs()})
	klog.FromContext(ctx).V(4).Info("Promised GPU devices", "pod", klog.KObj(pod), "node", nodeName, "devices", devices, "milliGPU", share.Milli)
	return nil
}

// countAbsent books the promises to pods that the snapshot does not show on the node yet.
func (p *Plugin) countAbsent(inventory *gpu.Inventory, info fwk.NodeInfo, self types.UID) {
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
			inventory.Occupy(a.Devices, a.Share)
		}
	}
}

// Unreserve takes the promise back.
func (p *Plugin) Unreserve(_ context.Context, cycle fwk.CycleState, pod *v1.Pod, _ string) {
	if !cycle.IsPodGroupSchedulingCycle() {
		p.cluster.ledger.release(pod.UID)
		p.cluster.claims.Stale()
	}
}

// PreBindPreFlight skips PreBind for pods that were promised nothing.
func (p *Plugin) PreBindPreFlight(_ context.Context, _ fwk.CycleState, pod *v1.Pod, nodeName string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	if a, ok := p.cluster.ledger.of(pod.UID); !ok || a.Node != nodeName {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return &fwk.PreBindPreFlightResult{AllowParallel: true}, nil
}

// PreBind writes the promised devices to the pod, in one patch, before the pod is bound: the node's agent reads them
// when the pod arrives there, and so does the next scheduler after a restart.
func (p *Plugin) PreBind(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	if _, err := cycle.Read(promisedKey); err != nil {
		// PreBindPreFlight is not asked where the feature gate NominatedNodeNameForExpectation is off.
		return nil
	}
	promised, ok := p.cluster.ledger.of(pod.UID)
	if !ok || promised.Node != nodeName {
		return fwk.AsStatus(fmt.Errorf("telling pod %s/%s its GPUs: the promise on node %s is gone", pod.Namespace, pod.Name, nodeName))
	}
	s, err := p.state(ctx, cycle, pod)
	if err != nil {
		return fwk.AsStatus(err)
	}
	patch, err := assignmentPatch(pod, s.request.Dialect, promised)
	if err != nil {
		return fwk.AsStatus(err)
	}
	_, err = p.handle.ClientSet().CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("telling pod %s/%s its GPUs: %w", pod.Namespace, pod.Name, err))
	}
	return nil
}

// assignmentPatch writes the assignment in the pod's dialect. The UID makes the API server refuse the patch when a new
// pod has taken the name.
func assignmentPatch(pod *v1.Pod, dialect kubeview.Dialect, a kubeview.Assignment) ([]byte, error) {
	patch := map[string]any{"metadata": map[string]any{
		"uid":         pod.UID,
		"annotations": kubeview.AssignmentAnnotations(dialect, a, time.Now()),
	}}
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding patch of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return data, nil
}
