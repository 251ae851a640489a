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

// Fence keeps a scheduler that may no longer lead from writing: it allows writes only if the lease was renewed
// recently. The leader election notices a lost lease only when it next tries to renew it. A process that was stopped
// for longer than its lease, for example with its virtual machine, would go on scheduling with outdated state for up to
// the renew deadline while another replica leads: nodes and GPUs would be given away twice.
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

// Lock returns the lock, whose renewals open the fence.
func (f *Fence) Lock(of resourcelock.Interface) resourcelock.Interface {
	return &lock{Interface: of, fence: f}
}

// Guarded returns the configuration of a client whose writes fail while the fence is closed.
func (f *Fence) Guarded(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{f, next} })
	return config
}

// Leads reports whether this replica leads.
func (f *Fence) Leads() bool { return f.Check() == nil }

// Check returns an error if another replica may lead. Wall-clock time counts as well as monotonic time, which may stand
// still while the machine is suspended.
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

// lock opens the fence at each renewal.
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

// write counts the lease from before the request, because other replicas count it from when they see it.
func (l *lock) write(record resourcelock.LeaderElectionRecord, send func() error) error {
	began := l.fence.clock.Now()
	mine := record.HolderIdentity == l.Identity()
	if !mine {
		// Another replica may have the lease as soon as it is free.
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
	if needsLead(request) {
		if err := t.fence.Check(); err != nil {
			if request.Body != nil {
				_ = request.Body.Close()
			}
			return nil, fmt.Errorf("refusing to %s %s: %w", request.Method, request.URL.Path, err)
		}
	}
	return t.next.RoundTrip(request)
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// unfenced are the API groups that every replica may write to: leases, events and reviews of rights.
var unfenced = []string{"/apis/coordination.k8s.io/", "/apis/events.k8s.io/", "/apis/authorization.k8s.io/",
	"/apis/authentication.k8s.io/"}

// needsLead reports whether only the leader may make the request.
func needsLead(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	path := request.URL.Path
	for _, prefix := range unfenced {
		if strings.Contains(path, prefix) {
			return false
		}
	}
	_, below, _ := strings.Cut(path, "/api/v1/namespaces/")
	_, resource, _ := strings.Cut(below, "/")
	return resource != "events" && !strings.HasPrefix(resource, "events/")
}
