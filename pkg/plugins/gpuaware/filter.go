package gpuaware

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/process"
)

// PreFilter reads the pod once for the whole cycle. A pod whose request cannot be read stays pending, and its event
// says which key is wrong. Filter is skipped for a pod that fits any node as far as GPUs go.
func (p *Plugin) PreFilter(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod,
	_ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	s, err := p.read(ctx, pod)
	if err != nil {
		return nil, rejection(err)
	}
	cycle.Write(stateKey, s)
	if s.claims == nil && !s.request.WantsGPU() && !s.request.NeedsGPUNode && s.request.MinNodeCPUMilli == 0 {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

// PreFilterExtensions returns nil: PreFilter keeps nothing that depends on other pods.
func (*Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// CountsOnNodes implements process.NodeCounter.
func (*Plugin) CountsOnNodes() {}

// Unfit returns the cause for nodes whose GPUs are of a model, or have a memory, that the pod does not accept; nil for
// pods that accept any. GPUs of claims are not considered.
func (p *Plugin) Unfit(pod *v1.Pod) func(*v1.Node) obstacle.NodeCause {
	request, err := p.settings.request(pod)
	if err != nil || len(request.Models) == 0 && request.MinMemMiB == 0 {
		return nil
	}
	return func(node *v1.Node) obstacle.NodeCause {
		read, _ := p.settings.keys.ReadGPUNode(node)
		reason := gpu.Fit(read.For(&request.Request).Empty(), &request.Request)
		if reason.Cause != gpu.WrongModel && reason.Cause != gpu.GPUMemory {
			return obstacle.NodeCause{}
		}
		cause := obstacle.OfNodes(reason)
		cause.Own = true
		return cause
	}
}

// Filter refuses nodes that cannot serve the pod's GPU request now, with one reason.
func (p *Plugin) Filter(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	s, err := p.state(ctx, cycle, pod)
	if err != nil {
		return rejection(err)
	}
	var reason gpu.Reason
	if s.claims.serves(info) {
		reason = s.claims.fit(info, &s.request.Request)
	} else {
		reason = gpu.Fit(s.live.healthy(p.view(info).of(&s.request.Request)), &s.request.Request)
	}
	return s.statusFor(reason)
}

// refusal is a reason with its message.
type refusal struct {
	reason gpu.Reason
	err    error
}

// statusFor is the status of a node for a reason, nil if it fits. Most nodes are refused for the same reason, whose
// message is made once.
func (s *podState) statusFor(reason gpu.Reason) *fwk.Status {
	if reason.Cause == gpu.Fits {
		return nil
	}
	last := s.lastRefusal.Load()
	if last == nil || last.reason != reason {
		last = &refusal{reason, process.ReasonError(reason)}
		s.lastRefusal.Store(last)
	}
	code := fwk.UnschedulableAndUnresolvable
	if reason.Evictable() {
		code = fwk.Unschedulable
	}
	return fwk.NewStatus(code).WithError(last.err)
}
