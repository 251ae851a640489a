package replay

import (
	"sync/atomic"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/lab/simulation"
)

// phase is the position of the scheduling loop.
type phase int32

const (
	// beforePop: waits for permission to take the next pod from the queue.
	beforePop phase = iota
	// popping: waits for a ready pod in the queue.
	popping
	// beforeCycle: has a pod and waits for permission to schedule it. The next phase is the cycle itself.
	beforeCycle
)

// gate stops the scheduling loop before it takes a pod from the queue and before it schedules it, until all other
// goroutines are idle. Without it the loop would race with informers, bindings and plugins, and the next pod, and the
// state that its cycle sees, would be random.
type gate struct {
	phase   atomic.Int32
	changed chan struct{}
	permit  chan struct{}
}

func newGate() *gate {
	return &gate{changed: make(chan struct{}, 1), permit: make(chan struct{})}
}

// guard has the scheduling loop of a world, which does not run yet, go through the gate.
func (g *gate) guard(w *simulation.World) {
	pop, stopped := w.NextEntity, w.Stopped()
	w.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		if !g.stop(stopped, beforePop) {
			return nil, nil
		}
		entity, err := pop(logger)
		if err != nil || entity == nil || !g.stop(stopped, beforeCycle) {
			return nil, err
		}
		return entity, nil
	}
}

// stop announces the phase and waits for permission to go on. It returns false when the scheduler stops.
func (g *gate) stop(stopped <-chan struct{}, p phase) bool {
	g.phase.Store(int32(p))
	select {
	case g.changed <- struct{}{}:
	default:
	}
	select {
	case <-g.permit:
		return true
	case <-stopped:
		return false
	}
}

func (g *gate) at() phase { return phase(g.phase.Load()) }

// open lets the loop, which is waiting, go on into the next phase.
func (g *gate) open() {
	g.phase.Add(1)
	g.permit <- struct{}{}
}
