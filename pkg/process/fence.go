package process

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// Fence keeps a scheduler that may no longer lead from writing: it lets writes through while the lease was renewed
// within a time. The leader election tells a process that it has lost its lease only when it next tries to renew it. A
// process that was stopped for longer than its lease, by a debugger, a paused virtual machine or a host without memory,
// goes on scheduling for up to the renew deadline after it has woken, with what it knew before, while another replica
// leads: nodes and GPUs are given away twice.
type Fence struct {
	within time.Duration
	clock  clock.PassiveClock

	mu      sync.Mutex
	renewed time.Time // zero while this process does not lead
}

// NewFence returns a fence that is closed until the lease is acquired. within is the time after which the leader
// election gives up a lease that could not be renewed: it is shorter than the time after which another replica takes
// it.
func NewFence(within time.Duration) *Fence {
	return &Fence{within: within, clock: clock.RealClock{}}
}

// Lock returns the lock with the fence told of each renewal.
func (f *Fence) Lock(of resourcelock.Interface) resourcelock.Interface {
	return &lock{Interface: of, fence: f}
}

// Guarded returns the configuration of a client whose writes the fence lets through or refuses.
func (f *Fence) Guarded(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{f, next} })
	return config
}

// Leads reports whether this replica leads.
func (f *Fence) Leads() bool { return f.Check() == nil }

// Check returns an error when another replica may lead. Time that went by on the clock on the wall counts as well as
// that of the machine's own, which may stand still while the machine is suspended.
func (f *Fence) Check() error {
	f.mu.Lock()
	renewed := f.renewed
	f.mu.Unlock()
	if renewed.IsZero() {
		return errors.New("this replica does not lead")
	}
	now := f.clock.Now()
	since := max(now.Sub(renewed), now.Round(0).Sub(renewed.Round(0)))
	if since > f.within {
		return fmt.Errorf("this replica has not renewed its lease for %s, and another one may lead",
			since.Round(time.Millisecond))
	}
	return nil
}

// lock is a lock that tells a fence of each renewal.
type lock struct {
	resourcelock.Interface
	fence *Fence
}

// Create takes the lease.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update renews the lease, takes it over, or gives it back.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error { return l.Interface.Update(ctx, record) })
}

// write counts a lease from before the request: others count it from when they see it.
func (l *lock) write(record resourcelock.LeaderElectionRecord, send func() error) error {
	began := l.fence.clock.Now()
	mine := record.HolderIdentity == l.Identity()
	if !mine {
		// From the moment when the lease is free another replica may have it.
		l.fence.set(time.Time{})
	}
	err := send()
	if err == nil && mine {
		l.fence.set(began)
	}
	return err
}

func (f *Fence) set(renewed time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = renewed
}

type transport struct {
	fence *Fence
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if decides(request) {
		if err := t.fence.Check(); err != nil {
			if request.Body != nil {
				_ = request.Body.Close()
			}
			return nil, fmt.Errorf("refusing to %s %s: %w", request.Method, request.URL.Path, err)
		}
	}
	return t.next.RoundTrip(request)
}

// WrappedRoundTripper lets others see what is behind this transport.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// free are the groups that replicas write to whether they lead or not: the lease itself, what they say, and what they
// ask about rights.
var free = []string{"/apis/coordination.k8s.io/", "/apis/events.k8s.io/", "/apis/authorization.k8s.io/",
	"/apis/authentication.k8s.io/"}

// decides says whether a request is one that only the leader may make.
func decides(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	path := request.URL.Path
	for _, prefix := range free {
		if strings.Contains(path, prefix) {
			return false
		}
	}
	_, below, _ := strings.Cut(path, "/api/v1/namespaces/")
	_, resource, _ := strings.Cut(below, "/")
	return resource != "events" && !strings.HasPrefix(resource, "events/")
}
