package overview

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/cluster/inputs"
	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// filtered is an API that answers some requests in another way.
type filtered struct {
	http.RoundTripper
	status func(*http.Request) int
}

func (f filtered) RoundTrip(req *http.Request) (*http.Response, error) {
	if code := f.status(req); code != 0 {
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"not for you","code":403}`
		if code == http.StatusNotFound {
			body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"not served","code":404}`
		}
		recorder := &http.Response{StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: readCloser{strings.NewReader(body)}}
		return recorder, nil
	}
	return f.RoundTripper.RoundTrip(req)
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// server is an API in memory with a node, two pods and a PodGroup.
func server(t *testing.T) *memapi.Server {
	t.Helper()
	api := memapi.New()
	groups := schedulingv1alpha1.SchemeGroupVersion
	api.Register(groups.WithResource("podgroups"), "PodGroup", true)
	for _, o := range []any{node("a", "nvidia.com/gpu=2"), pod("p", "a", "cpu=1 nvidia.com/gpu=1", func(p *v1.Pod) {
		p.Spec.Containers[0].Env = []v1.EnvVar{{Name: "TOKEN", Value: "secret"}}
	}), pod("q", "", "cpu=1 nvidia.com/gpu=4", refused("no node fits"))} {
		switch o := o.(type) {
		case *v1.Node:
			o.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("Node"))
			require.NoError(t, api.Create(o))
		case *v1.Pod:
			o.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("Pod"))
			require.NoError(t, api.Create(o))
		}
	}
	return api
}

func started(t *testing.T, config *rest.Config) (*Store, error) {
	t.Helper()
	reader, err := inputs.NewReader(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	s := newStore()
	return s, s.Watch(ctx, reader)
}

// until waits for an answer that holds.
func until(t *testing.T, w *Store, what string, holds func(*Cluster) bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for !holds(w.Cluster(now)) {
		select {
		case <-w.changed:
		case <-deadline:
			t.Fatalf("waited in vain for %s: %+v", what, w.Cluster(now))
		}
	}
}

func TestAClusterIsFollowed(t *testing.T) {
	t.Parallel()
	api := server(t)
	w, err := started(t, api.RESTConfig())
	require.NoError(t, err)
	c := w.Cluster(now)
	if got := states(c); !cmp.Equal(got, map[string]string{"a": "AF"}) || len(c.Queue) != 1 ||
		c.Queue[0].Reason != "no node fits" || len(c.LeftOut) != 0 {
		t.Fatalf("at the start: %v, queue %+v, left out %v", got, c.Queue, c.LeftOut)
	}
	api.Delete(v1.SchemeGroupVersion.WithResource("pods"), types.NamespacedName{Namespace: "team", Name: "p"})
	until(t, w, "the pod to go", func(c *Cluster) bool { return c.Totals.AllocatedMilliGPU == 0 })
	more := node("b", "nvidia.com/gpu=4")
	more.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("Node"))
	require.NoError(t, api.Create(more))
	until(t, w, "the node", func(c *Cluster) bool { return c.Totals.GPUs == 6 })
}

// collected is what a dump has of a cluster.
func collected(t *testing.T, reader *inputs.Reader) (objects []runtime.Object, leftOut []string) {
	t.Helper()
	leftOut, err := reader.Collect(t.Context(), func(obj runtime.Object) error {
		objects = append(objects, obj)
		return nil
	})
	require.NoError(t, err)
	return objects, leftOut
}

func TestWhatIsFollowedIsNotListedAgain(t *testing.T) {
	t.Parallel()
	api := server(t)
	config := api.RESTConfig()
	var lists atomic.Int32
	config.Transport = filtered{config.Transport, func(req *http.Request) int {
		if strings.HasSuffix(req.URL.Path, "/pods") && req.URL.Query().Get("watch") == "" {
			lists.Add(1)
		}
		return 0
	}}
	reader, err := inputs.NewReader(config)
	require.NoError(t, err)
	w := newStore()
	err = w.Watch(t.Context(), reader)
	require.NoError(t, err)
	before := lists.Load()
	api.Delete(v1.SchemeGroupVersion.WithResource("pods"), types.NamespacedName{Namespace: "team", Name: "q"})
	until(t, w, "the pod to go", func(c *Cluster) bool { return len(c.Queue) == 0 })
	got, gotLeftOut := collected(t, reader)
	if after := lists.Load(); after != before {
		t.Errorf("pods were listed %d times more", after-before)
	}
	fresh, err := inputs.NewReader(api.RESTConfig())
	require.NoError(t, err)
	want, wantLeftOut := collected(t, fresh)
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 2 {
		t.Errorf("%d objects (-listed +followed):\n%s", len(got), diff)
	}
	if diff := cmp.Diff(wantLeftOut, gotLeftOut); diff != "" {
		t.Errorf("left out (-listed +followed):\n%s", diff)
	}
}

func TestNamespacesAreReadWithNodesListedOnce(t *testing.T) {
	t.Parallel()
	api := server(t)
	for _, namespace := range []string{"other", "third"} {
		p := pod("of-"+namespace, "a", "cpu=1", func(p *v1.Pod) { p.Namespace = namespace })
		p.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("Pod"))
		require.NoError(t, api.Create(p))
	}
	config := api.RESTConfig()
	var lists atomic.Int32
	config.Transport = filtered{config.Transport, func(req *http.Request) int {
		if strings.HasSuffix(req.URL.Path, "/nodes") {
			lists.Add(1)
		}
		return 0
	}}
	reader, err := inputs.NewReader(config)
	require.NoError(t, err)
	b := newStore()
	require.NoError(t, b.Read(t.Context(), reader, "team", "other"))
	var got []string
	for _, j := range b.JobList(now).Jobs {
		got = append(got, j.Namespace+"/"+j.Name)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"other/of-other", "team/p", "team/q"}, got); diff != "" || lists.Load() != 1 {
		t.Errorf("nodes were listed %d times; workloads (-want +got):\n%s", lists.Load(), diff)
	}
}

func TestEventsAreRead(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(now)
	about := v1.ObjectReference{Kind: "Pod", Namespace: "team", Name: "q"}
	tests := map[string]struct {
		event v1.Event
		want  Warning
	}{
		"one that counts": {v1.Event{InvolvedObject: about, Reason: "FailedScheduling", Message: "no", Count: 3,
			LastTimestamp: at},
			Warning{Time: now, Namespace: "team", Object: "Pod/q", Reason: "FailedScheduling", Message: "no", Count: 3}},
		"a series": {v1.Event{InvolvedObject: about, EventTime: metav1.NewMicroTime(now.Add(-time.Hour)),
			Series: &v1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(now)}},
			Warning{Time: now, Namespace: "team", Object: "Pod/q", Count: 7}},
		"a single one of the newer kind": {v1.Event{InvolvedObject: about, EventTime: metav1.NewMicroTime(now)},
			Warning{Time: now, Namespace: "team", Object: "Pod/q", Count: 1}},
		"one that only says when it came": {v1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at},
			InvolvedObject: about}, Warning{Time: now, Namespace: "team", Object: "Pod/q", Count: 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, "warning", test.want, warningOf(&test.event))
		})
	}
}

func TestWhatMayNotBeRead(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		path    string
		code    int
		left    string
		refused bool
		// watched is set if they may be listed.
		watched bool
	}{
		"events are forbidden": {path: "/events", code: http.StatusForbidden, left: "events: not for you"},
		"claims are forbidden": {path: "/resourceclaims", code: http.StatusForbidden,
			left: "resourceclaims: not for you"},
		"events may be listed only": {path: "/events", code: http.StatusForbidden, watched: true,
			left: "events: not for you"},
		"pods may be listed only":  {path: "/pods", code: http.StatusForbidden, watched: true, refused: true},
		"slices are not served":    {path: "/resourceslices", code: http.StatusNotFound},
		"PodGroups are not served": {path: "/podgroups", code: http.StatusNotFound},
		"pods are forbidden":       {path: "/pods", code: http.StatusForbidden, refused: true},
		"nodes are forbidden":      {path: "/nodes", code: http.StatusForbidden, refused: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := server(t).RESTConfig()
			config.Transport = filtered{config.Transport, func(req *http.Request) int {
				watches := req.URL.Query().Get("watch") != ""
				if strings.HasSuffix(req.URL.Path, test.path) && (watches || !test.watched) {
					return test.code
				}
				return 0
			}}
			w, err := started(t, config)
			if test.refused {
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "reading "+test.path[1:]) {
					t.Fatalf("the error is %v", err)
				}
				return
			}
			require.NoError(t, err)
			c := w.Cluster(now)
			assert.Equal(t, "left out", test.left, strings.Join(c.LeftOut, "|"))
			if got := states(c); !cmp.Equal(got, map[string]string{"a": "AF"}) {
				t.Errorf("GPUs are %v", got)
			}
		})
	}
}

func TestOnlyWhatIsShownIsKept(t *testing.T) {
	t.Parallel()
	w, err := started(t, server(t).RESTConfig())
	require.NoError(t, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	p, _ := w.objects[keyOf(pod("p", "", ""))].(countedPod)
	if p.Pod == nil || len(p.Spec.Containers[0].Env) != 0 {
		t.Errorf("kept is %+v", p.Pod)
	}
}

func TestAServerThatDoesNotAnswerIsSaid(t *testing.T) {
	t.Parallel()
	b := newStore()
	b.leaveOut(unreachable, "does not answer")
	b.leaveOut("events", "not for you")
	assert.Equal(t, "left out", []string{"API server: does not answer", "events: not for you"},
		b.Cluster(now).LeftOut)
	b.leaveOut(unreachable, "")
	if got := b.Cluster(now).LeftOut; len(got) != 1 {
		t.Errorf("left out is %v", got)
	}
}
