package main

import (
	"context"
	"sync"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// started returns a channel that is closed when the scheduler has started: with leader election when it takes part in it, without
// when it asks for the first pod. The stock command has all objects before either, or reads them as the leader where the
// configuration delays that; after either, it does not end with an error while its context lasts.
func (p *process) started() <-chan struct{} {
	election := p.config.LeaderElection
	if election == nil {
		return p.gate.Asked()
	}
	lock := &entry{Interface: election.Lock, entered: make(chan struct{})}
	election.Lock = lock
	return lock.entered
}

// entry is the lock of a leader election that tells when it is first read. An elector reads it first of all, and what cannot
// become an elector never reads it.
type entry struct {
	resourcelock.Interface
	once    sync.Once
	entered chan struct{}
}

// Get reads the record of the leader election.
func (e *entry) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	e.once.Do(func() { close(e.entered) })
	return e.Interface.Get(ctx)
}
