package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"berth.dev/berth/pkg/fence"
	"berth.dev/berth/pkg/informers"
)

// lease is what the flags say about who answers.
type lease struct {
	elect           bool
	namespace, name string
}

// The times of the lease are those of the scheduler's own.
const leaseLasts, renewWithin, retryAfter = 15 * time.Second, 10 * time.Second, 2 * time.Second

// election is one replica's part in the election; nil where there is none.
type election struct {
	elector *leaderelection.LeaderElector
	fence   *fence.Fence
	name    string
}

// guarded returns the configuration of a client that writes only while no other replica can answer.
func (e *election) guarded(api *rest.Config) *rest.Config {
	if e == nil {
		return api
	}
	return e.fence.Guarded(api)
}

// elector returns nil if there is no election.
func (l lease) elector(api *rest.Config) (*election, error) {
	if !l.elect {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this replica: %w", err)
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, l.namespace, l.name,
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}, api, renewWithin)
	if err != nil {
		return nil, fmt.Errorf("preparing the lease %s/%s: %w", l.namespace, l.name, err)
	}
	f := fence.New(renewWithin)
	informers.Elected(func() bool { return f.Check() == nil })
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: f.Lock(lock), Name: l.name, ReleaseOnCancel: true,
		LeaseDuration: leaseLasts, RenewDeadline: renewWithin, RetryPeriod: retryAfter,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the election: %w", err)
	}
	return &election{elector: elector, fence: f, name: l.namespace + "/" + l.name}, nil
}

// run takes part until the context ends, and returns an error when the lease is lost. Another replica answers from then
// on, and this one has promised what the other must see: it starts again from what the API server says.
func (e *election) run(ctx context.Context) error {
	if e == nil {
		<-ctx.Done()
		return nil
	}
	e.elector.Run(ctx)
	select {
	case <-ctx.Done():
		return nil
	default:
	}
	return errors.New("losing the lease " + e.name + ": another replica answers now")
}

// leads returns an error if another replica has to answer.
func (e *election) leads() error {
	if e == nil {
		return nil
	}
	if !e.elector.IsLeader() {
		return errors.New("this replica of the extender does not hold the lease " + e.name)
	}
	if err := e.fence.Check(); err != nil {
		return fmt.Errorf("lease %s: %w", e.name, err)
	}
	return nil
}
