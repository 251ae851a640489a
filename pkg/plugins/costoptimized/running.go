package costoptimized

import (
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/pkg/kubeview"
)

// runningPods counts the pods that keep nodes in use, those with GPUs and those without apart. It is fed by the pod
// informer, which hands over every change with the state before it, so that the counts are exact however events fall
// together.
type runningPods struct {
	keys             kubeview.GPUKeys
	withGPU, without atomic.Int64
}

func (r *runningPods) counter() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { r.add(obj, 1) },
		UpdateFunc: func(before, after any) { r.add(before, -1); r.add(after, 1) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			r.add(obj, -1)
		},
	}
}

func (r *runningPods) add(obj any, n int64) {
	pod, ok := obj.(*v1.Pod)
	if !ok || pod.Spec.NodeName == "" || !kubeview.KeepsNode(pod) {
		return
	}
	if r.keys.MayUseGPU(pod) {
		r.withGPU.Add(n)
	} else {
		r.without.Add(n)
	}
}

func (r *runningPods) count(withGPU bool) int64 {
	if withGPU {
		return r.withGPU.Load()
	}
	return r.without.Load()
}
