package main

import (
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"berth.dev/berth/test/harness/require"
	"berth.dev/berth/test/invariants"
)

// world is a load on an API in memory that a test watches by hand.
type world struct {
	*load
	client *fake.Clientset
	custom *dynamicfake.FakeDynamicClient
}

func newWorld() *world {
	w := &world{
		client: fake.NewClientset(),
		custom: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{podGroups: "PodGroupList"}),
	}
	w.load = newLoad(w.client, w.custom, newObserver(invariants.New(time.Hour)), 1, time.Second)
	return w
}

// see makes the load see the pods as they are, each on a node.
func (w *world) see(t *testing.T, node string) int {
	t.Helper()
	list, err := w.client.Tracker().List(v1.SchemeGroupVersion.WithResource("pods"), v1.SchemeGroupVersion.WithKind("Pod"),
		namespace)
	require.NoError(t, err)
	pods := list.(*v1.PodList).Items
	known := w.watched.pods()
	for i := range pods {
		pods[i].Spec.NodeName = node
		w.watched.take("pods", watch.Modified, &pods[i])
		delete(known, pods[i].Name)
	}
	for _, gone := range known {
		w.watched.take("pods", watch.Deleted, gone)
	}
	return len(pods)
}

func (w *world) groups(t *testing.T) int {
	t.Helper()
	deleted, created := 0, 0
	for _, action := range w.custom.Actions() {
		switch action.GetVerb() {
		case "create":
			created++
		case "delete":
			deleted++
		}
	}
	return created - deleted
}

func TestAJobIsMadeAgainAfterAnEvictionAndGoesWhenItHasRun(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.add(&job{name: "g", gang: true, size: 3, gpus: 1, class: lowClass})
	w.set(0, true)
	w.tend(t.Context())
	if n := w.see(t, "n"); n != 3 || w.groups(t) != 1 {
		t.Fatalf("%d pods and %d groups, want 3 and 1", n, w.groups(t))
	}
	require.NoError(t, w.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), namespace, "g-1"))
	w.tend(t.Context())
	w.see(t, "n")
	w.tend(t.Context())
	if n := w.see(t, "n"); n != 3 || w.groups(t) != 1 {
		t.Errorf("after an eviction: %d pods and %d groups, want 3 and 1", n, w.groups(t))
	}
	if _, evicted := w.counts(); evicted != 1 {
		t.Errorf("%d evicted, want 1", evicted)
	}
	w.set(0, false)
	w.tend(t.Context())
	if n := w.see(t, ""); n != 0 || w.groups(t) != 0 || w.waiting() != 0 {
		t.Errorf("after its end: %d pods, %d groups and %d jobs, want none", n, w.groups(t), w.waiting())
	}
}

func TestAPodThatCameAndWentUnseenIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.add(&job{name: "g", gang: true, size: 2, gpus: 1, class: lowClass})
	w.set(0, true)
	w.tend(t.Context())
	require.NoError(t, w.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), namespace, "g-1"))
	w.tend(t.Context())
	if n := w.see(t, "n"); n != 2 {
		t.Errorf("%d pods, want 2", n)
	}
}

// The API server may do what it was asked and not say so in time.
func TestAJobThatEndsIsNotMadeAgainWhenAnAnswerIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld()
	lost := true
	w.custom.PrependReactor("delete", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
		if lost {
			lost = false
			return true, nil, errors.New("timeout")
		}
		return false, nil, nil
	})
	w.add(&job{name: "g", gang: true, size: 2, gpus: 1, class: lowClass})
	w.set(0, false)
	w.tend(t.Context())
	w.see(t, "n")
	w.tend(t.Context())
	if w.waiting() != 1 || w.heardFor() > time.Minute {
		t.Errorf("%d jobs wait, the API server refused %s ago", w.waiting(), w.heardFor())
	}
	w.see(t, "")
	w.tend(t.Context())
	if n := w.see(t, ""); n != 0 || w.waiting() != 0 {
		t.Errorf("%d pods and %d jobs, want none", n, w.waiting())
	}
}
