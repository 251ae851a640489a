package gpuaware

import (
	"context"
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/claimview"
	"berth.dev/berth/pkg/gpu/mix"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/podview"
)

// rollEvery is how often at most pods are looked at again whose claims say nothing yet.
const rollEvery = time.Second

// roll is which pods were counted, in the mix and in the turnover, as they were given a node: one that never is may ask
// for anything. A pod is counted out as what it was counted in, and not at all if it never was. What a pod claims is
// found out in the background: its claims and the devices may come after it, and to find out may take long. It is safe
// for concurrent use.
type roll struct {
	cluster *cluster
	wake    chan struct{}

	mu   sync.Mutex
	pods map[types.UID]enrolled
	// classes holds each class of these pods once: most pods are of few.
	classes map[mix.Class]*enrolledClass
	// waiting are pods whose claims are not known.
	waiting map[types.UID]*v1.Pod
}

// enrolled is what a pod was counted as.
type enrolled struct {
	class *enrolledClass
	// mixed reports that it is part of the mix once it is placed, placed that it was given a node, and turns that it is
	// part of the turnover.
	mixed, placed, turns bool
}

// enrolledClass is a class with how many pods were counted as it.
type enrolledClass struct {
	mix.Class
	pods int
}

// newRoll returns a roll that is kept until ctx ends.
func newRoll(ctx context.Context, c *cluster) *roll {
	r := &roll{cluster: c, wake: make(chan struct{}, 1), pods: map[types.UID]enrolled{},
		classes: map[mix.Class]*enrolledClass{}, waiting: map[types.UID]*v1.Pod{}}
	if c.claims != nil {
		c.claims.OnRead(r.poke)
		go r.keep(ctx)
	}
	return r
}

// see counts a pod that was given a node, or that has come or changed and may claim something: that is looked at as the
// pod comes, because it is what the pod waits with.
func (r *roll) see(pod *v1.Pod) {
	if podview.Finished(pod) || pod.Spec.NodeName == "" && !claimview.MayClaim(pod) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e, known := r.pods[pod.UID]
	switch {
	case known && (e.placed || pod.Spec.NodeName == ""):
		return
	case !known:
		request, err := r.cluster.views.keys.PodGPURequest(pod)
		if r.mustAsk(pod, &request, err) {
			r.waiting[pod.UID] = pod
			r.poke()
			return
		}
		class, mixed, _ := r.cluster.learner.ClassBy(context.Background(), pod, request, err)
		if !mixed && !claimview.MayClaim(pod) && !r.cluster.views.keys.MayUseGPU(pod) {
			return // it counts for nothing, as most pods do where taints keep them off the nodes with GPUs
		}
		e = r.enroll(class, mixed)
	}
	r.count(pod, e)
}

// enroll begins to count a pod. The lock is held.
func (r *roll) enroll(class mix.Class, mixed bool) enrolled {
	c := r.classes[class]
	if c == nil {
		c = &enrolledClass{Class: class}
		r.classes[class] = c
	}
	c.pods++
	return enrolled{class: c, mixed: mixed}
}

// mustAsk reports whether only claims say what the pod, with this request, asks of GPUs.
func (r *roll) mustAsk(pod *v1.Pod, request *gpuview.Request, err error) bool {
	return r.cluster.claims != nil && err == nil && !request.WantsGPU() && !podview.BelongsToNode(pod) &&
		claimview.MayClaim(pod)
}

// count counts what has not been counted. The lock is held.
func (r *roll) count(pod *v1.Pod, e enrolled) {
	if !e.placed && pod.Spec.NodeName != "" {
		e.placed = true
		e.mixed = e.mixed && r.cluster.views.keys.Unassigned(pod) == ""
		if e.mixed {
			r.cluster.learner.Started(e.class.Class, pod)
		}
		if e.turns = r.cluster.mayUseGPU(pod); e.turns {
			r.cluster.views.totals.came()
		}
	}
	r.pods[pod.UID] = e
}

// leave counts a pod out. It is idempotent.
func (r *roll) leave(pod *v1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.pods[pod.UID]
	delete(r.pods, pod.UID)
	delete(r.waiting, pod.UID)
	if e.placed && e.mixed {
		r.cluster.learner.Ended(e.class.Class, pod, time.Now())
	}
	if e.turns {
		r.cluster.views.totals.went()
	}
	if e.class == nil {
		return
	}
	if e.class.pods--; e.class.pods == 0 {
		delete(r.classes, e.class.Class)
	}
}

func (r *roll) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// keep counts the pods that wait when their claims or the devices may be known.
func (r *roll) keep(ctx context.Context) {
	if !r.cluster.claims.Synced(ctx) {
		return
	}
	pause := time.NewTicker(rollEvery)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		r.ask(ctx)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// ask counts those of the pods that wait whose claims are known by now.
func (r *roll) ask(ctx context.Context) {
	r.mu.Lock()
	waiting := maps.Clone(r.waiting)
	r.mu.Unlock()
	for uid, pod := range waiting {
		if !claimview.ClaimsNamed(pod) {
			continue
		}
		class, mixed, known := r.cluster.learner.ClassOf(ctx, pod)
		if !known {
			continue
		}
		r.mu.Lock()
		if latest := r.waiting[uid]; latest != nil {
			delete(r.waiting, uid)
			r.count(latest, r.enroll(class, mixed))
		}
		r.mu.Unlock()
	}
}
