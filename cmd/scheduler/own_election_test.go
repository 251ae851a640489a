package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/reload"
)

// unreachableLock is a lease that cannot be read.
type unreachableLock struct{ freeLock }

func (unreachableLock) Describe() string { return "unreachable" }

func (unreachableLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return nil, nil, errors.New("no connection")
}

// The leader election wants more distance between its times than the validation of a configuration does.
func TestASchedulerThatTakesPartInTheElectionHasStarted(t *testing.T) {
	t.Parallel()
	election := &leaderelection.LeaderElectionConfig{
		Lock: unreachableLock{}, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second,
		RetryPeriod: 9 * time.Second,
		Callbacks:   leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	}
	completed := (&schedulerserverconfig.Config{LeaderElection: election}).Complete()
	started := (&process{config: &completed}).started()
	if _, err := leaderelection.NewLeaderElector(*election); err == nil {
		t.Fatal("the times are not refused")
	}
	if isClosed(started) {
		t.Error("a scheduler that cannot take part has started")
	}
	election.RetryPeriod = time.Second
	elector, err := leaderelection.NewLeaderElector(*election)
	if err != nil {
		t.Fatal(err)
	}
	if isClosed(started) {
		t.Error("a scheduler that does not take part yet has started")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		elector.Run(ctx)
	}()
	<-started // as a standby, too
	cancel()
	<-done
}

func TestASchedulerWithoutElectionHasStartedWhenItAsksForAPod(t *testing.T) {
	t.Parallel()
	completed := (&schedulerserverconfig.Config{}).Complete()
	gate := reload.NewGate(t.Context(), nextOfNone, nil, nil)
	started := (&process{config: &completed, gate: gate}).started()
	if isClosed(started) {
		t.Error("it has started before it asks")
	}
	if _, err := gate.Next(klog.FromContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	if !isClosed(started) {
		t.Error("it asks and has not started")
	}
}

// nextOfNone is the queue of a scheduler that is being stopped.
func nextOfNone(klog.Logger) (framework.QueuedEntityInfo, error) { return nil, nil }

// slowLock is a lease whose renewals take as long as the test wants.
type slowLock struct {
	freeLock
	asked, answer chan struct{}
}

func (l slowLock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	l.asked <- struct{}{}
	<-l.answer
	return nil
}

// A renewal that came after the lease was given back would take it again, for a process that is about to be replaced.
func TestAProcessThatHasLeftTheElectionRenewsNothing(t *testing.T) {
	t.Parallel()
	lock := slowLock{asked: make(chan struct{}), answer: make(chan struct{})}
	p := &part{Interface: lock, begun: make(chan struct{})}
	renewed, left := make(chan error), make(chan struct{})
	go func() { renewed <- p.Update(t.Context(), resourcelock.LeaderElectionRecord{}) }()
	<-lock.asked
	go func() {
		defer close(left)
		p.leave()
	}()
	if isClosed(left) {
		t.Error("it has left while a renewal is under way")
	}
	close(lock.answer)
	if err := <-renewed; err != nil {
		t.Errorf("the renewal under way: %v", err)
	}
	<-left
	_, _, err := p.Get(t.Context())
	for what, err := range map[string]error{
		"reading": err, "creating": p.Create(t.Context(), resourcelock.LeaderElectionRecord{}),
		"renewing": p.Update(t.Context(), resourcelock.LeaderElectionRecord{}),
	} {
		if !errors.Is(err, errLeft) {
			t.Errorf("%s the lease: error %v, want %v", what, err, errLeft)
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
