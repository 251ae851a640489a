package extender

import (
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	kubeinformers "k8s.io/client-go/informers"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/process/informers"
)

// unassigned keeps pods with GPUs off nodes that share them: the devices of every pod there have to be chosen when it
// is bound, and the stock scheduler does not do it.
type unassigned struct {
	keys  *gpuview.Keys
	nodes *informers.ByNode[atomic.Pointer[gpuview.Node]]
}

// newUnassigned returns nil for a profile that knows nothing of GPUs.
func newUnassigned(profile *schedulerconfig.KubeSchedulerProfile,
	factory kubeinformers.SharedInformerFactory) (*unassigned, error) {
	for _, c := range profile.PluginConfig {
		args, ok := c.Args.(*config.GPUAwareArgs)
		if !ok {
			continue
		}
		nodes, err := informers.NewByNode[atomic.Pointer[gpuview.Node]](factory)
		if err != nil {
			return nil, err
		}
		return &unassigned{keys: &gpuview.Keys{GPUNames: args.GPUNames}, nodes: nodes}, nil
	}
	return nil, nil
}

const reasonUnassigned = "node(s) share their GPUs, whose devices only berth-scheduler assigns"

func (u *unassigned) filter(pod *v1.Pod, node *v1.Node) *fwk.Status {
	if u == nil {
		return nil
	}
	request, err := u.keys.PodGPURequest(pod)
	if err != nil || request.Count == 0 {
		return nil // what cannot be read is refused by the plugin
	}
	entry := u.nodes.Of(node)
	read := entry.Value.Load()
	if read == nil {
		read, _ = u.keys.ReadGPUNode(node)
		entry.Value.Store(read)
	}
	if read.For(&request.Request).Empty().Mode != gpu.ModeShared {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reasonUnassigned)
}
