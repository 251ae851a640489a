package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/test/invariants"
)

// The kinds of faults that only the end of a round shows.
const (
	notRecovered = "no pod is bound after the fault"
	leftBehind   = "pods are left although the cluster is empty"
	leaked       = "something is still reserved in an empty cluster"
)

// round is one disaster and what came of it.
type round struct {
	Disaster string `json:"disaster" row:"fault"`
	Seed     uint64 `json:"seed"`
	// RecoverySeconds is from the fault, or from its end where it lasts, to the first pod that a scheduler which leads
	// has bound.
	RecoverySeconds float64 `json:"recoverySeconds" column:"recovery, s|%.2f|optional"`
	// DrainSeconds is from when no more pods came to when each of them had run.
	DrainSeconds float64  `json:"drainSeconds" column:"drain, s|%.1f"`
	Pods         int      `json:"pods" column:"pods|%.0f"`
	Bound        int      `json:"bound" column:"bound|%.0f"`
	Evicted      int      `json:"evicted" column:"evicted|%.0f"`
	Broken       []string `json:"broken,omitempty"`
}

// play puts load on the cluster, does the disaster at a random moment, and checks what is left. An error is of the
// program.
func (c *cluster) play(ctx context.Context, d disaster, seed uint64, podsPerSecond float64) (round, error) {
	random := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a round must come again from its seed
	r := round{Disaster: d.name, Seed: seed}
	began := time.Now()
	c.load.seed(seed)
	c.load.set(podsPerSecond, false)
	c.excused.Store(false)
	if err := await(ctx, "the load",
		func(context.Context) (bool, error) { return len(c.watched.bound(began)) >= 20, nil }); err != nil {
		return r, err
	}
	pause(ctx, time.Duration(random.IntN(4000))*time.Millisecond)

	c.excused.Store(true)
	hit := time.Now()
	if err := d.do(ctx, c, random); err != nil {
		return r, fmt.Errorf("%s: %w", d.name, err)
	}
	if d.lasts {
		hit = time.Now()
	}
	recovered, err := c.recovered(ctx)
	switch {
	case err == nil:
		r.RecoverySeconds = recovered.Sub(hit).Seconds()
	case ctx.Err() == nil:
		r.Broken = append(r.Broken, fmt.Sprintf("%s: %v", notRecovered, err))
	}
	c.excused.Store(false)
	pause(ctx, 3*time.Second)
	c.finish(ctx, &r, began)
	return r, ctx.Err()
}

// finish stops the load, lets the jobs end, and checks what is left.
func (c *cluster) finish(ctx context.Context, r *round, began time.Time) {
	r.Broken = append(r.Broken, c.settle(ctx)...)
	stopped := time.Now()
	r.Broken = append(r.Broken, c.drain(ctx, leftBehind)...)
	r.DrainSeconds = time.Since(stopped).Seconds()
	r.Broken = append(r.Broken, c.fill(ctx)...)
	for _, fault := range c.checker.All() {
		r.Broken = append(r.Broken, fault.Error())
	}
	r.Pods, r.Evicted = c.load.counts()
	r.Bound = len(c.watched.bound(began))
}

// recovered waits for a scheduler that leads and for a pod that is bound then. A scheduler that has ended meanwhile is
// started again, as a kubelet would.
func (c *cluster) recovered(ctx context.Context) (time.Time, error) {
	var led time.Time
	err := await(ctx, "a scheduler that leads", func(ctx context.Context) (bool, error) {
		if !slices.ContainsFunc(c.replicas, (*replica).alive) {
			return false, c.startReplica(c.replicas[0])
		}
		led = time.Now()
		return c.leader(ctx) != nil, nil
	})
	if err != nil {
		return led, err
	}
	var first time.Time
	return first, await(ctx, "a pod to be bound", func(context.Context) (bool, error) {
		bound := c.watched.bound(led)
		if len(bound) == 0 {
			return false, nil
		}
		first = bound[0].at
		return true, nil
	})
}

// settle stops arrivals and departures until nothing changes any more. Every pod that is left pending has to say why.
func (c *cluster) settle(ctx context.Context) []string {
	c.load.set(0, true)
	err := await(ctx, "quiet", func(context.Context) (bool, error) { return c.watched.quietFor() > 2*time.Second, nil })
	if err != nil {
		return []string{err.Error()}
	}
	c.checker.Explained()
	return nil
}

// drain lets jobs end until none is left. If nothing changes for a while although there are some, they are forgotten.
func (c *cluster) drain(ctx context.Context, kind string) []string {
	const tooQuiet = 30 * time.Second
	c.load.set(0, false)
	err := await(ctx, "the jobs to end", func(context.Context) (bool, error) {
		if c.load.waiting() == 0 && len(c.watched.pods()) == 0 {
			return true, nil
		}
		// Where the API server answers late, as on a machine with too much to do, the jobs wait for it.
		if min(c.watched.quietFor(), c.load.heardFor()) > tooQuiet {
			return false, errors.New("nothing changes any more")
		}
		return false, nil
	})
	if err == nil || ctx.Err() != nil {
		return nil
	}
	pending, left := 0, []string(nil)
	for name, pod := range c.watched.pods() {
		if pod.Spec.NodeName == "" {
			pending++
			why := c.checker.Reason(types.NamespacedName{Namespace: namespace, Name: name})
			left = append(left, name+" ("+cmp.Or(why, invariants.Unexplained)+")")
		} else {
			left = append(left, fmt.Sprintf("%s (%s on %s, to be deleted: %t)", name, pod.Status.Phase, pod.Spec.NodeName,
				pod.DeletionTimestamp != nil))
		}
	}
	slices.Sort(left)
	broken := fmt.Sprintf("%s: %v: %d jobs, %d pods, %d pending: %.1000s", kind, err, c.load.waiting(), len(left), pending,
		strings.Join(left, "; "))
	c.load.abandon(ctx)
	return []string{broken}
}

// fill asks for every GPU at once. Whatever a scheduler still keeps for a pod that is gone is in the way.
func (c *cluster) fill(ctx context.Context) []string {
	began := time.Now().UnixNano()
	// A gang that is larger than the smallest cluster may take longer to bind than one may be bound in part.
	for i := range c.scale {
		c.load.add(&job{name: fmt.Sprintf("whole-%d-%d", began, i), gang: true, size: wholeNodes, gpus: wholeGPUs,
			milliCPU: 1000, class: lowClass})
		c.load.add(&job{name: fmt.Sprintf("shares-%d-%d", began, i), gang: true, size: 2 * sharedNodes * sharedGPUs,
			milliGPU: 500, milliCPU: 1000, class: lowClass})
	}
	return c.drain(ctx, leaked)
}
