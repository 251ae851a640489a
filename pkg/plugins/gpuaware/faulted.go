package gpuaware

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/podview"
)

// faulted are the pods that would fit a node if it were not for a faulty GPU. That a fault is over is no event of the
// cluster: nothing but the next measurement tells it, so that these pods are put back into the queue by hand. It is
// safe for concurrent use.
type faulted struct {
	// pods is the informer's store.
	pods cache.Store

	mu    sync.Mutex
	byUID map[types.UID]string
}

func newFaulted(pods cache.Store) *faulted {
	return &faulted{pods: pods, byUID: map[types.UID]string{}}
}

// add remembers a pod.
func (f *faulted) add(pod *v1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byUID[pod.UID] = pod.Namespace + "/" + pod.Name
}

// forget drops a pod that is placed or gone. It is idempotent.
func (f *faulted) forget(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byUID, uid)
}

// take returns the pods that still wait, by name, and forgets all: those that are refused again come again.
func (f *faulted) take() map[string]*v1.Pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	waiting := map[string]*v1.Pod{}
	for uid, name := range f.byUID {
		obj, _, err := f.pods.GetByKey(name)
		if pod, ok := obj.(*v1.Pod); err == nil && ok && pod.UID == uid && pod.Spec.NodeName == "" && !podview.Finished(pod) {
			waiting[name] = pod
		}
	}
	clear(f.byUID)
	return waiting
}

// retry puts the pods back into the queue.
func (f *faulted) retry(ctx context.Context, handle fwk.Handle) {
	waiting := f.take()
	if len(waiting) == 0 {
		return
	}
	logger := klog.FromContext(ctx)
	logger.V(2).Info("Faults of GPUs are over: pods that they kept pending are tried again", "pods", len(waiting))
	handle.Activate(logger, waiting)
}

// noteFault remembers the pod if nothing but a faulty GPU keeps it off the node.
func (p *Plugin) noteFault(ctx context.Context, s *podState, pod *v1.Pod, v *view) {
	if s.live.snapshot == nil || s.faulted.Load() || len(s.live.snapshot.Faults(v.node.Node.Name, s.live.now)) == 0 {
		return
	}
	inventory, _ := v.of(&s.request.Request)
	if gpu.Fit(inventory, &s.request.Request).Cause == gpu.Fits && !s.faulted.Swap(true) {
		p.cluster.faulted.add(pod)
		if len(p.signals.Snapshot().Faults(v.node.Node.Name, time.Now())) == 0 {
			p.cluster.faulted.retry(ctx, p.handle) // it was over before the pod was remembered
		}
	}
}
