package replay

import (
	"sync"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/lab/simulation"
)

// phase is where the scheduling loop stands.
type phase int

const (
	// beforePop: about to take the next pod from the queue; waits for leave.
	beforePop phase = iota
	// popping: waits for the queue to have a pod that is ready.
	popping
	// beforeCycle: has a pod; waits for leave to schedule it. The phase after it is the cycle itself.
	beforeCycle
)

// gate stops the scheduling loop before it takes a pod from the queue and before it schedules it, until the conductor
// has seen everything else come to rest. Without it the loop would race with the informers, with binding and with
// plugins' goroutines, and which pod is next, and what its cycle sees, would be a matter of chance.
type gate struct {
	mu      sync.Mutex
	phase   phase
	changed chan struct{}
	leave   chan struct{}
}

func newGate() *gate {
	return &gate{changed: make(chan struct{}, 1), leave: make(chan struct{})}
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

// stop announces the phase and waits for leave to go on.
func (g *gate) stop(stopped <-chan struct{}, p phase) bool {
	g.set(p)
	select {
	case g.changed <- struct{}{}:
	default:
	}
	select {
	case <-g.leave:
		return true
	case <-stopped:
		return false
	}
}

func (g *gate) set(p phase) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.phase = p
}

func (g *gate) at() phase {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.phase
}

// open lets the loop, which is waiting, go on into the next phase.
func (g *gate) open() {
	g.mu.Lock()
	g.phase++
	g.mu.Unlock()
	g.leave <- struct{}{}
}
