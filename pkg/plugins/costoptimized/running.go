package costoptimized

import (
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process/informers"
)

// runningPods counts the pods that keep nodes in use, with and without GPUs, and the members of gangs, running or not.
// The pod informer reports every change with the state before it, so that the counts are exact.
type runningPods struct {
	keys gpuview.Keys
	in   *read.Gangs

	mu               sync.RWMutex
	withGPU, without int64
	gangs            map[gang.ID]int64
}

// runningPodsOf returns those of the scheduler, fed by its informer: profiles that read GPUs under the same names share
// them.
func runningPodsOf(factory kubeinformers.SharedInformerFactory, keys gpuview.Keys, in *read.Gangs) (*runningPods,
	error) {
	return informers.SharedBy(factory, fmt.Sprintf("%#v", keys), func() (*runningPods, error) {
		r := newRunningPods(keys, in)
		if _, err := informers.Handle(factory, factory.Core().V1().Pods().Informer(), r.counter()); err != nil {
			return nil, fmt.Errorf("watching pods that run: %w", err)
		}
		return r, nil
	})
}

func newRunningPods(keys gpuview.Keys, in *read.Gangs) *runningPods {
	return &runningPods{keys: keys, in: in, gangs: map[gang.ID]int64{}}
}

func (r *runningPods) counter() cache.ResourceEventHandler {
	return informers.Events(func(before, now *v1.Pod) { r.add(before, -1); r.add(now, 1) },
		func(pod *v1.Pod) { r.add(pod, -1) })
}

func (r *runningPods) add(pod *v1.Pod, n int64) {
	if pod == nil || !podview.KeepsNode(pod) {
		return
	}
	id, usesGPU := r.in.Of(pod), r.keys.MayUseGPU(pod)
	r.mu.Lock()
	defer r.mu.Unlock()
	if id != (gang.ID{}) {
		if r.gangs[id] += n; r.gangs[id] == 0 {
			delete(r.gangs, id)
		}
	}
	switch {
	case pod.Spec.NodeName == "":
	case usesGPU:
		r.withGPU += n
	default:
		r.without += n
	}
}

// members returns how many pods lose their work when one of a gang does: all members that exist; 1 without a gang.
func (r *runningPods) members(id gang.ID) int64 {
	if id == (gang.ID{}) {
		return 1
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return max(r.gangs[id], 1)
}

func (r *runningPods) count(withGPU bool) int64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if withGPU {
		return r.withGPU
	}
	return r.without
}
