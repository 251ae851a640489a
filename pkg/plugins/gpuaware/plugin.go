// Package gpuaware is the plugin that places GPU work where it leaves the least GPU stranded.
//
// A pod goes only to a node with the GPUs it asks for: enough of them free, of an accepted model, with enough memory
// and the links asked for, shared or exclusive as it wants. Among those, the node is best on which the placement is
// expected to waste the least GPU, judged by the mix of pods that run. On nodes that share GPUs the plugin also chooses
// the device, writes it to the pod in the dialect in which the pod asked, and never assigns a share twice.
//
// The rules are pure functions of package gpu; this package fetches what they ask for.
package gpuaware

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/signals"
	"berth.dev/berth/pkg/wellknown"
)

// Name of the plugin in configurations.
const Name = "GPUAware"

// Plugin is the GPUAware plugin of one profile.
type Plugin struct {
	handle   fwk.Handle
	settings *settings
	shared   *shared
	// signals reads measurements in the background; nil when the args ask for none.
	signals *signals.Reader[signals.GPUSnapshot]
	// lastChange is the change of the node that changed last.
	lastChange atomic.Pointer[nodeChange]
}

var (
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.FilterPlugin      = &Plugin{}
	_ fwk.ScorePlugin       = &Plugin{}
	_ process.Scorer        = &Plugin{}
	_ fwk.ReservePlugin     = &Plugin{}
	_ fwk.PreBindPlugin     = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
	_ process.NodeCounter   = &Plugin{}
)

// New makes the plugin for one profile.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	s, err := readArgs(obj, handle.ProfileName())
	if err != nil {
		return nil, err
	}
	gpuview.ProfileKeysOf(handle.SharedInformerFactory()).Add(s.keys)
	c, err := sharedFor(ctx, handle, s.keys)
	if err != nil {
		return nil, err
	}
	reader, err := signals.StartGPU(ctx, handle.SharedInformerFactory(), s.args.Signals, c.measured, c.nodesKnown)
	if err != nil {
		return nil, fmt.Errorf("starting to read GPU signals for profile %s: %w", handle.ProfileName(), err)
	}
	p := &Plugin{handle: handle, settings: s, shared: c, signals: reader}
	if reader != nil {
		go p.retryAfterFaults(ctx)
	}
	return p, nil
}

// Name returns the plugin's name.
func (*Plugin) Name() string { return Name }

// SignPod returns what the plugin reads of a pod, which is the request. A node's score depends on the pod, on that
// node, and on sums over the cluster by which places for large pods and scarce models are priced. They change by little
// with each pod; identical pods of one batch see them a few pods late.
func (p *Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	request, err := p.settings.request(pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, err.Error())
	}
	if len(pod.Spec.ResourceClaims) > 0 {
		return nil, fwk.NewStatus(fwk.Unschedulable, "claims are the pod's own")
	}
	fragment := fwk.SignFragment{Key: "berth.dev/" + Name, Value: request}
	if request.AsksNothing() {
		fragment.Value = request.CPUMilli // signatures are encoded as JSON, which takes long for a request
	}
	return []fwk.SignFragment{fragment}, nil
}

// podState is what the plugin knows about the pod in one scheduling cycle. It is immutable but for lastRefusal.
type podState struct {
	request gpuview.Request
	// judge values what the pod changes on a node.
	judge *gpu.Judge
	live  live
	// claims is how nodes serve the pod by dynamic resource allocation; nil for pods that need no devices from it.
	claims *claims
	// lastRefusal is that of the last node that was refused.
	lastRefusal atomic.Pointer[refusal]
}

// Clone returns the state itself: nothing that matters changes it.
func (s *podState) Clone() fwk.StateData { return s }

const stateKey fwk.StateKey = "berth.dev/" + Name

// read makes the pod's state of this cycle.
func (p *Plugin) read(ctx context.Context, pod *v1.Pod) (*podState, error) {
	request, err := p.settings.request(pod)
	if err != nil {
		return nil, err
	}
	p.shared.claims.Recent()
	p.shared.views.count(p.handle.SnapshotSharedLister())
	s := &podState{request: request}
	p.readClaims(ctx, pod, s)
	if p.signals != nil {
		s.live = live{snapshot: p.signals.Snapshot(), now: time.Now()}
	}
	s.judge = p.shared.views.totals.judge(p.settings, &s.request.Request)
	return s, nil
}

// rejection is the status of a pod that could not be read, because of a bad value or an internal error.
func rejection(err error) *fwk.Status {
	if bad := (*wellknown.BadValue)(nil); errors.As(err, &bad) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	return fwk.AsStatus(err)
}

// view returns the plugin's view of a node.
func (p *Plugin) view(info fwk.NodeInfo) *view {
	return p.shared.views.of(info, p.handle.SnapshotSharedLister())
}

// state returns what PreFilter read. A profile may enable Filter or Score alone: then the pod is read at the first
// node.
func (p *Plugin) state(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod) (*podState, error) {
	s, err := process.Read[*podState](cycle, stateKey)
	if !errors.Is(err, fwk.ErrNotFound) {
		return s, err
	}
	if s, err = p.read(ctx, pod); err != nil {
		return nil, err
	}
	cycle.Write(stateKey, s)
	return s, nil
}
