package coscheduling

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corelisters "k8s.io/client-go/listers/core/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
)

// removals counts the deletions and grants each request.
type removals struct{ atomic.Int64 }

func (r *removals) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodDelete {
		r.Add(1)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`)))}, nil
}

// The scheduler starts beside a gang that runs: its pod and the PodGroup that stands in for what the Job says are known at once.
func TestStandInStaysUntilOwnersAreKnown(t *testing.T) {
	t.Parallel()
	kind, known := gangview.OwnerKindOf("Job")
	if !known {
		t.Fatal("Jobs are no owners of gangs")
	}
	job := func(parallelism int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job",
			"metadata": map[string]any{"namespace": "ns", "name": "j", "uid": "j"},
			"spec":     map[string]any{"parallelism": parallelism, "completions": parallelism, "completionMode": "Indexed"}}}
	}
	unreadable := func(s *ownerSource) {
		s.follower.mu.Lock()
		defer s.follower.mu.Unlock()
		s.unreadable = "cannot read jobs"
	}
	for _, tc := range []struct {
		name    string
		happens func(*ownerSource)
		want    int64
	}{
		{"the list of Jobs has not come", func(*ownerSource) {}, 0},
		{"Jobs cannot be read", unreadable, 0},
		{"the Job is in the list", func(s *ownerSource) { _ = s.Replace([]any{job(1)}, "") }, 0},
		{"the Job is not in the list", func(s *ownerSource) { _ = s.Replace(nil, "") }, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			transport, owner := &removals{}, gangview.Owner{Kind: "Job", Namespace: "ns", Name: "j"}
			id := owner.Gang()
			client, err := newPodGroupClient(&restclient.Config{Host: "http://api.invalid", QPS: -1, Transport: transport})
			if err != nil {
				t.Fatal(err)
			}
			c := newCoordinator(settings{timeout: time.Minute}, &podGroups{client: client, store: cache.NewStore(cache.MetaNamespaceKeyFunc)})
			pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			c.pods.lister = corelisters.NewPodLister(pods)
			if err := pods.Add(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j-0", UID: "j-0"}}); err != nil {
				t.Fatal(err)
			}
			c.owners = &ownerFollower{changed: c.ownerSays, kick: make(chan struct{}, 1), sources: map[string]*ownerSource{},
				gangs: map[gang.ID]*followedGang{}, dirty: map[gang.ID]bool{}}
			source := newOwnerSource(c.owners, kind)
			c.owners.sources[owner.Kind] = source
			c.owners.gangs[id] = &followedGang{owner: owner, source: source}
			source.join(ownerKey("ns", "j"), id)
			s := c.status
			s.ledger, s.groups, s.pods, s.unheard = c.ledger, c.groups, c.pods, c.owners.unheard
			pg := standInFor(id, 1, nil)
			c.ledger.Observe(id, gang.Member{UID: "j-0", Namespace: "ns", Name: "j-0", State: gang.Bound, Node: "n", Ours: true}, time.Now())

			for _, happens := range []func(*ownerSource){func(*ownerSource) {}, tc.happens} {
				happens(source)
				source.follower.mu.Lock()
				source.follower.mark(id)
				source.follower.mu.Unlock()
				write := func() {
					v, _ := c.ledger.View(id)
					if _, err := s.keepStandIn(t.Context(), id, v, pg, time.Now()); err != nil {
						t.Fatal(err)
					}
				}
				// Before and after the follower has told what it knows.
				write()
				for owner, state := range c.owners.news {
					c.ownerSays(context.Background(), owner, state)
				}
				write()
			}
			if got := transport.Load(); got != tc.want {
				t.Errorf("the PodGroup was removed %d times, want %d", got, tc.want)
			}
		})
	}
}
