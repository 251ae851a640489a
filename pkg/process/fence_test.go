package process

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// election is a lock that has the answers of a test.
type election struct {
	resourcelock.Interface
	err  error
	took func()
}

func (*election) Identity() string { return "me" }

func (e *election) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	return e.Update(context.Background(), resourcelock.LeaderElectionRecord{})
}

func (e *election) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	if e.took != nil {
		e.took()
	}
	return e.err
}

func TestTheFenceIsOpenWhileTheLeaseIsFresh(t *testing.T) {
	t.Parallel()
	const within = 10 * time.Second
	mine, nobody, other := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}, resourcelock.LeaderElectionRecord{},
		resourcelock.LeaderElectionRecord{HolderIdentity: "other"}
	for name, test := range map[string]struct {
		do   func(l resourcelock.Interface, e *election, pass func(time.Duration))
		want string
	}{
		"nothing was acquired": {func(resourcelock.Interface, *election, func(time.Duration)) {}, "does not lead"},
		"acquired": {func(l resourcelock.Interface, _ *election,
			_ func(time.Duration)) {
			_ = l.Create(t.Context(), mine)
		}, ""},
		"taken over": {func(l resourcelock.Interface, _ *election, _ func(time.Duration)) { _ = l.Update(t.Context(), mine) },
			""},
		"not acquired": {func(l resourcelock.Interface, e *election, _ func(time.Duration)) {
			e.err = errors.New("conflict")
			_ = l.Create(t.Context(), mine)
		}, "does not lead"},
		"at the deadline": {func(l resourcelock.Interface, _ *election, pass func(time.Duration)) {
			_ = l.Update(t.Context(), mine)
			pass(within)
		}, ""},
		"past the deadline": {func(l resourcelock.Interface, _ *election, pass func(time.Duration)) {
			_ = l.Update(t.Context(), mine)
			pass(within + time.Millisecond)
		}, "has not renewed its lease for 10.001s"},
		"renewed after a pause": {func(l resourcelock.Interface, _ *election, pass func(time.Duration)) {
			_ = l.Update(t.Context(), mine)
			pass(time.Hour)
			_ = l.Update(t.Context(), mine)
		}, ""},
		"not renewed after a pause": {func(l resourcelock.Interface, e *election, pass func(time.Duration)) {
			_ = l.Update(t.Context(), mine)
			pass(time.Hour)
			e.err = errors.New("conflict")
			_ = l.Update(t.Context(), mine)
		}, "has not renewed its lease for 1h"},
		"a renewal that took long": {func(l resourcelock.Interface, e *election, pass func(time.Duration)) {
			e.took = func() { pass(within + time.Second) }
			_ = l.Update(t.Context(), mine)
		}, "has not renewed its lease for 11s"},
		"given back": {func(l resourcelock.Interface, _ *election, _ func(time.Duration)) {
			_ = l.Update(t.Context(), mine)
			_ = l.Update(t.Context(), nobody)
		}, "does not lead"},
		"given back, and nobody knows whether that arrived": {func(l resourcelock.Interface, e *election,
			_ func(time.Duration)) {
			_ = l.Update(t.Context(), mine)
			e.err = errors.New("timeout")
			_ = l.Update(t.Context(), nobody)
		}, "does not lead"},
		"given to another": {func(l resourcelock.Interface, _ *election, _ func(time.Duration)) {
			_ = l.Update(t.Context(), mine)
			_ = l.Update(t.Context(), other)
		}, "does not lead"},
		"a clock that was set back": {func(l resourcelock.Interface, _ *election, pass func(time.Duration)) {
			_ = l.Update(t.Context(), mine)
			pass(-time.Hour)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := NewFence(within)
			clock := clocktesting.NewFakePassiveClock(time.Now().Round(0))
			f.clock = clock
			e := &election{}
			test.do(f.Lock(e), e, func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) })
			err := f.Check()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestOnlyWhatTheLeaderDecidesIsRefused(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"POST /api/v1/namespaces/n/pods/p/binding":                             true,
		"POST /api/v1/namespaces/events/pods/p/binding":                        true,
		"PATCH /api/v1/namespaces/n/pods/p/status":                             true,
		"PATCH /api/v1/namespaces/n/pods/p":                                    true,
		"DELETE /api/v1/namespaces/n/pods/p":                                   true,
		"POST /api/v1/namespaces/n/pods/p/eviction":                            true,
		"PUT /apis/resource.k8s.io/v1/namespaces/n/resourceclaims/c/status":    true,
		"PATCH /apis/scheduling.x-k8s.io/v1alpha1/namespaces/n/podgroups/g":    true,
		"PATCH /api/v1/persistentvolumeclaims/c":                               true,
		"GET /api/v1/namespaces/n/pods":                                        false,
		"HEAD /api/v1/namespaces/n/pods":                                       false,
		"PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l":     false,
		"POST /apis/events.k8s.io/v1/namespaces/n/events":                      false,
		"POST /api/v1/namespaces/n/events":                                     false,
		"PATCH /api/v1/namespaces/n/events/e":                                  false,
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews":          false,
		"POST /apis/authentication.k8s.io/v1/tokenreviews":                     false,
		"POST /k8s/clusters/c/apis/coordination.k8s.io/v1/namespaces/n/leases": false,
		"POST /k8s/clusters/c/api/v1/namespaces/n/pods/p/binding":              true,
	} {
		method, path, _ := strings.Cut(line, " ")
		assert.Equal(t, line+": only the leader's", want, needsLead(httptest.NewRequest(method, path, nil)))
	}
}

func TestARefusedBindingIsNotSent(t *testing.T) {
	t.Parallel()
	var arrived atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(server.Close)
	f := NewFence(time.Hour)
	client, err := kubernetes.NewForConfig(f.Guarded(&rest.Config{Host: server.URL}))
	require.NoError(t, err)
	bind := func() error {
		return client.CoreV1().Pods("n").Bind(t.Context(), &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"}},
			metav1.CreateOptions{})
	}
	if err := bind(); err == nil || !strings.Contains(err.Error(), "does not lead") || arrived.Load() != 0 {
		t.Errorf("a replica that does not lead: %v, %d requests", err, arrived.Load())
	}
	require.NoError(t, f.Lock(&election{}).Update(t.Context(),
		resourcelock.LeaderElectionRecord{HolderIdentity: "me"}))
	if err := bind(); err != nil || arrived.Load() != 1 {
		t.Errorf("a leader: %v, %d requests", err, arrived.Load())
	}
}
