package main

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"berth.dev/berth/pkg/informers"
)

// started returns a channel that is closed when the scheduler has started: with leader election when it takes part in
// it, without when it asks for the first pod. The stock command has all objects before either, or reads them as the
// leader where the configuration delays that; after either, it does not end with an error while its context lasts.
func (p *process) started() <-chan struct{} {
	election := p.config.LeaderElection
	if election == nil {
		return p.gate.Asked()
	}
	p.part = &part{Interface: election.Lock, begun: make(chan struct{})}
	election.Lock = p.part
	return p.part.begun
}

// errLeft is what the leader election of this process hears when it has given its lease back.
var errLeft = errors.New("this process takes no part in the leader election any more")

// part is the lock of a leader election by which this process takes part in it. An elector reads it first of all, and
// what cannot become an elector never reads it.
type part struct {
	resourcelock.Interface
	once  sync.Once
	begun chan struct{}

	mu   sync.RWMutex
	left bool
}

// leave ends the part that this process takes, when the request under way has ended. A process that gives its lease
// back would take it again at its next renewal, and no replica would lead until the lease of a process that is gone
// expires.
func (p *part) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
}

// Get reads the record of the leader election.
func (p *part) Get(ctx context.Context) (record *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	p.once.Do(func() { close(p.begun) })
	err = p.request(func() error {
		record, raw, err = p.Interface.Get(ctx)
		return err
	})
	return record, raw, err
}

// Create takes the lease.
func (p *part) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return p.request(func() error { return p.Interface.Create(ctx, record) })
}

// Update renews the lease, takes it over, or gives it back.
func (p *part) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" {
		informers.HandOver(ctx)
	}
	return p.request(func() error { return p.Interface.Update(ctx, record) })
}

// request makes a request unless this process has left the election, which waits for requests under way.
func (p *part) request(do func() error) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.left {
		return errLeft
	}
	return do()
}
