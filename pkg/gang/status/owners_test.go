package status

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/read/grouptree"
	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/test/harness/require"
)

// ownersAPI is an API server in memory that may refuse its objects.
type ownersAPI struct {
	*memapi.Server
	mu      sync.Mutex
	of      string // is in the path of what is refused
	code    int    // 0 refuses nothing
	reason  metav1.StatusReason
	watches []io.Closer
}

// RoundTrip implements http.RoundTripper.
func (a *ownersAPI) RoundTrip(req *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.code != 0 && strings.Contains(req.URL.Path, a.of) {
		body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q}`, a.code, a.reason)
		return &http.Response{StatusCode: a.code, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body))}, nil
	}
	response, err := a.Server.RoundTrip(req)
	if err == nil && req.URL.Query().Get("watch") != "" {
		a.watches = append(a.watches, response.Body)
	}
	return response, err
}

// refuse refuses a resource, or nothing any more if the code is 0. Watches end, as when a kind is not served any more.
func (a *ownersAPI) refuse(resource string, code int, reason metav1.StatusReason) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of, a.code, a.reason = resource, code, reason
	for _, w := range a.watches {
		_ = w.Close()
	}
	a.watches = nil
}

// hearing is a follower, the server that it follows, and what it has told of gangs in the namespace default.
type hearing struct {
	*Owners
	api *ownersAPI

	mu   sync.Mutex
	told map[string]read.OwnerState
}

// hear runs a test of a follower in virtual time.
func hear(t *testing.T, test func(*testing.T, *hearing)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &hearing{api: &ownersAPI{Server: memapi.New()}, told: map[string]read.OwnerState{}}
		config := h.api.RESTConfig()
		config.Transport = h.api
		var err error
		h.Owners, err = NewOwners(t.Context(), config, nil, &members.Directory{}, events.NewFakeRecorder(100), h.note(t))
		require.NoError(t, err)
		t.Cleanup(h.running.Wait) // it ends with its context
		test(t, h)
	})
}

func (h *hearing) note(t *testing.T) func(context.Context, read.Owner, read.OwnerState) {
	return func(_ context.Context, owner read.Owner, s read.OwnerState) {
		if s.UID != "" && strings.HasSuffix(s.Why, "does not exist") {
			t.Errorf("%s has gone, and an event about %q would say so", owner.Object(), s.UID)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		s.APIVersion, s.UID, s.Created = "", "", time.Time{}
		h.told[owner.Gang().Name] = s
	}
}

// tells checks what is told last of a gang when there was time to notice that a kind is served, or not any more.
func (h *hearing) tells(t *testing.T, name string, want read.OwnerState) {
	t.Helper()
	time.Sleep(4 * ownerRetry) //nolint:forbidigo // virtual time
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	if diff := cmp.Diff(want, h.told[name]); diff != "" {
		t.Errorf("gang %s (-want +told):\n%s", name, diff)
	}
}

// owned follows the gang of an object.
func (h *hearing) owned(t *testing.T, kind, name string) {
	t.Helper()
	h.Follow(t.Context(), read.Owner{Kind: kind, Namespace: "default", Name: name}, false)
}

// owners are the objects of a kind in the namespace default, on the server itself.
type owners struct {
	dynamic.ResourceInterface
	t                *testing.T
	apiVersion, kind string
}

// serve has the server know a kind, whose version is v1.
func (h *hearing) serve(t *testing.T, group, kind string) owners {
	t.Helper()
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: strings.ToLower(kind) + "s"}
	if strings.Contains(group, ".") {
		h.api.Register(resource, kind, true)
	}
	client, err := dynamic.NewForConfig(h.api.RESTConfig())
	require.NoError(t, err)
	return owners{client.Resource(resource).Namespace("default"), t, resource.GroupVersion().String(), kind}
}

// create makes an object with this spec, which is YAML.
func (o owners) create(name, spec string) {
	o.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte("spec: "+spec), &object.Object); err != nil {
		o.t.Fatal(err)
	}
	object.SetAPIVersion(o.apiVersion)
	object.SetKind(o.kind)
	object.SetName(name)
	if _, err := o.Create(o.t.Context(), object, metav1.CreateOptions{}); err != nil {
		o.t.Fatal(err)
	}
}

func TestAKindMayNotBeReadUntilItMay(t *testing.T) {
	t.Parallel()
	hear(t, func(t *testing.T, h *hearing) {
		h.serve(t, "batch", "Job").create("train", `{parallelism: 2}`)
		h.api.refuse("jobs", http.StatusForbidden, metav1.StatusReasonForbidden)
		h.owned(t, "Job", "train")
		// The pods of a LeaderWorkerSet say all that is needed, so that its own kind need not be readable.
		h.Follow(t.Context(), read.Owner{Kind: "LeaderWorkerSet", Namespace: "default", Name: "serve", Part: "0",
			Minimum: 4}, false)
		h.tells(t, "job.train", read.OwnerState{
			Why: `cannot read jobs.batch: the scheduler's role lacks get, list and watch on "jobs" in API group "batch"`})
		h.api.refuse("", 0, "")
		h.tells(t, "job.train", read.OwnerState{Minimum: 2})
		h.tells(t, "leaderworkerset.serve.0", read.OwnerState{})
	})
}

func TestATreeIsWaitedForWhileItsKindIsNotServed(t *testing.T) {
	t.Parallel()
	hear(t, func(t *testing.T, h *hearing) {
		var refiled []string
		h.FollowTrees(&read.OwnerPolicy{}, func(from gang.ID, podGroup string) {
			h.mu.Lock()
			defer h.mu.Unlock()
			refiled = append(refiled, podGroup+" from "+from.Name)
		})
		client, err := dynamic.NewForConfig(h.api.RESTConfig())
		require.NoError(t, err)
		version := schema.GroupVersion{Group: "scheduling.k8s.io", Version: "v1beta1"}
		groups := owners{client.Resource(version.WithResource("podgroups")).Namespace("default"), t, version.String(),
			"PodGroup"}
		groups.create("alone", `{schedulingPolicy: {gang: {minCount: 2}}}`)
		groups.create("a", `{schedulingPolicy: {gang: {minCount: 2}}, parentCompositePodGroupName: job}`)
		h.api.refuse("compositepodgroups", http.StatusNotFound, metav1.StatusReasonNotFound)
		h.owned(t, read.NativeGroup, "a")
		state := read.OwnerState{Minimum: 2, Says: map[string]string{}, Node: grouptree.Node{Parent: "job", Least: 2},
			Why: "cannot read compositepodgroups.scheduling.k8s.io: the cluster does not serve them"}
		h.tells(t, "native.a", state)
		h.api.refuse("", 0, "")
		state.Why = "CompositePodGroup job, the parent of PodGroup a, does not exist"
		h.tells(t, "native.a", state)
		if diff := cmp.Diff([]string{"alone from native.alone"}, refiled); diff != "" {
			t.Errorf("groups whose pods are looked at again (-want +got):\n%s", diff)
		}
	})
}
