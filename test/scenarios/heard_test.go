package scenarios_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"berth.dev/berth/test/harness/require"
)

// heardMetric is the newest version that each informer of the scheduler has stored.
const heardMetric = "informer_store_resource_version"

// hearWithin bounds the wait for the scheduler to hear of what a command has changed.
const hearWithin = 20 * time.Second

// writes notes the newest version of each resource that a script has written, so that the script can wait until the
// scheduler has heard of it. The zero value is ready for use.
type writes struct {
	mu     sync.Mutex
	newest map[schema.GroupResource]int64
}

// note notes a version of an object.
func (n *writes) note(resource schema.GroupResource, version string) {
	number, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.newest == nil {
		n.newest = map[schema.GroupResource]int64{}
	}
	n.newest[resource] = max(n.newest[resource], number)
}

// forget drops what was written until now by the versions that the scheduler has heard of, and returns an error that
// names one that it has not. Resources that it does not watch are not waited for.
func (n *writes) forget(heard map[schema.GroupResource]int64) (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for resource, version := range n.newest {
		switch latest, watched := heard[resource]; {
		case watched && latest < version:
			err = fmt.Errorf("the scheduler has heard of %s until version %d, not of %d", resource, latest, version)
		default:
			delete(n.newest, resource)
		}
	}
	return err
}

// pending reports whether anything was written that the scheduler may not have heard of.
func (n *writes) pending() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.newest) > 0
}

// through makes the clients of config note what they write. They speak JSON, in which the versions can be read.
func (n *writes) through(config *rest.Config) {
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.Wrap(func(to http.RoundTripper) http.RoundTripper { return noting{to, n} })
}

// noting notes the versions of the objects that are written through it.
type noting struct {
	to     http.RoundTripper
	writes *writes
}

// RoundTrip implements http.RoundTripper.
func (t noting) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := t.to.RoundTrip(req)
	writes := req.Method == http.MethodPost || req.Method == http.MethodPut || req.Method == http.MethodPatch
	if err != nil || response.StatusCode >= http.StatusMultipleChoices || !writes || req.URL.Query().Has("dryRun") {
		return response, err
	}
	resource, subresource := resourceAt(req.URL.Path)
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	var object struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Status   v1.PodStatus      `json:"status"`
	}
	// Objects of other kinds may have a status that no pod has.
	_ = json.Unmarshal(body, &object)
	// The scheduler does not watch pods that have ended: it only hears that they do.
	if resource.Resource != "pods" || subresource != "" || !ended(object.Status.Phase) {
		t.writes.note(resource, object.Metadata.ResourceVersion)
	}
	return response, nil
}

func ended(phase v1.PodPhase) bool { return phase == v1.PodSucceeded || phase == v1.PodFailed }

// resourceAt returns what is at a path of the API.
func resourceAt(path string) (resource schema.GroupResource, subresource string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "apis" && len(parts) > 1 {
		resource.Group = parts[1]
		parts = parts[1:]
	}
	parts = parts[min(2, len(parts)):]
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if len(parts) > 0 {
		resource.Resource = parts[0]
	}
	if len(parts) > 2 {
		subresource = parts[2]
	}
	return resource, subresource
}

// noteDeleted notes the version at which an object of the scenario was deleted.
func (w *world) noteDeleted(resource schema.GroupResource) func(any) {
	return func(o any) {
		object, ok := o.(metav1.Object)
		if pod, isPod := o.(*v1.Pod); !ok || (isPod && ended(pod.Status.Phase)) {
			return
		}
		w.writes.note(resource, object.GetResourceVersion())
	}
}

// awaitHeard waits until the scheduler has heard of everything that the script has changed. It hears of nodes, of pods
// and of other objects separately, and on a busy machine of what came first last. While no scheduler leads there is
// none to wait for.
func (w *world) awaitHeard(ctx context.Context) error {
	if !w.writes.pending() {
		return nil
	}
	return w.eventually(ctx, hearWithin, func() error {
		if !w.led(ctx) {
			return nil
		}
		heard, err := w.cluster.heard(ctx)
		if err != nil {
			return err
		}
		return w.writes.forget(heard)
	})
}

// untilGone waits until the scenario's own informers know that what it has deleted is gone.
func (w *world) untilGone(ctx context.Context, get func() error) error {
	return w.eventually(ctx, 10*time.Second, func() error {
		if err := get(); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it still exists (%w)", err)
		}
		return nil
	})
}

// heard implements cluster.
func (r sandboxed) heard(ctx context.Context) (map[schema.GroupResource]int64, error) {
	family, err := r.metric(ctx, heardMetric)
	if err != nil {
		return nil, err
	}
	heard := map[schema.GroupResource]int64{}
	for _, m := range family.GetMetric() {
		var resource schema.GroupResource
		for _, label := range m.GetLabel() {
			switch label.GetName() {
			case "group":
				resource.Group = label.GetValue()
			case "resource":
				resource.Resource = label.GetValue()
			}
		}
		version := int64(m.GetGauge().GetValue())
		// One that has read nothing may wait until the kind is served. Where there are two, the slower one counts.
		if known, two := heard[resource]; version > 0 && (!two || version < known) {
			heard[resource] = version
		}
	}
	return heard, nil
}

func TestAScriptWaitsForWhatTheSchedulerWatchesAndHasNotHeardOf(t *testing.T) {
	t.Parallel()
	pods, nodes := v1.Resource("pods"), v1.Resource("nodes")
	groups := schema.GroupResource{Group: "scheduling.x-k8s.io", Resource: "podgroups"}
	const (
		pod   = `{"metadata":{"resourceVersion":"7"},"status":{"phase":"Running"}}`
		ended = `{"metadata":{"resourceVersion":"7"},"status":{"phase":"Succeeded"}}`
	)
	for name, tc := range map[string]struct {
		method, path, answer string
		heard                map[schema.GroupResource]int64
		waits                bool
	}{
		"a node that it has not heard of": {"POST", "/api/v1/nodes", pod, map[schema.GroupResource]int64{nodes: 6}, true},
		"a node that it has heard of":     {"POST", "/api/v1/nodes", pod, map[schema.GroupResource]int64{nodes: 7}, false},
		"what it does not watch":          {"POST", "/api/v1/nodes", pod, map[schema.GroupResource]int64{pods: 6}, false},
		"a group of another namespace": {"PATCH", "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/b/podgroups/g", pod,
			map[schema.GroupResource]int64{groups: 6}, true},
		"a namespace": {"POST", "/api/v1/namespaces", pod,
			map[schema.GroupResource]int64{v1.Resource("namespaces"): 6}, true},
		"a pod that ends": {"PATCH", "/api/v1/namespaces/a/pods/p/status", ended,
			map[schema.GroupResource]int64{pods: 6}, true},
		"a pod that has ended": {"PATCH", "/api/v1/namespaces/a/pods/p", ended, map[schema.GroupResource]int64{pods: 6},
			false},
		"what is only read": {"GET", "/api/v1/nodes", pod, map[schema.GroupResource]int64{nodes: 6}, false},
		"a dry run":         {"POST", "/api/v1/nodes?dryRun=All", pod, map[schema.GroupResource]int64{nodes: 6}, false},
		"no object":         {"POST", "/api/v1/nodes", "{}", map[schema.GroupResource]int64{nodes: 6}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var written writes
			answer := roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(tc.answer))}, nil
			})
			req := httptest.NewRequest(tc.method, tc.path, nil)
			response, err := noting{answer, &written}.RoundTrip(req)
			require.NoError(t, err)
			body, err := io.ReadAll(response.Body)
			if err := errors.Join(err, response.Body.Close()); err != nil || string(body) != tc.answer {
				t.Errorf("the client reads %q, %v", body, err)
			}
			if err := written.forget(tc.heard); (err != nil) != tc.waits {
				t.Errorf("got %v, want an error: %t", err, tc.waits)
			}
			if written.pending() != tc.waits {
				t.Errorf("pending is %t", written.pending())
			}
		})
	}
}

// roundTrip is a function as an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
