package memapi

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/leak"
	"berth.dev/berth/test/harness/require"
)

func TestMain(m *testing.M) { leak.Main(m) }

var pods = v1.SchemeGroupVersion.WithResource("pods")

// clients talks protobuf as the scheduler does, and JSON.
func clients(t *testing.T, s *Server) map[string]kubernetes.Interface {
	t.Helper()
	list := map[string]kubernetes.Interface{}
	for _, mediaType := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		config := s.RESTConfig()
		config.ContentType, config.AcceptContentTypes = mediaType, mediaType
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		list[mediaType] = client
	}
	return list
}

func pod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": name}}}
}

//nolint:tparallel // the parts use the same names on one server
func TestAPodIsBoundPatchedAndDeleted(t *testing.T) {
	t.Parallel()
	for mediaType, client := range clients(t, New()) {
		t.Run(mediaType, func(t *testing.T) {
			ctx := context.Background()
			api := client.CoreV1().Pods("default")
			w, err := api.Watch(ctx, metav1.ListOptions{LabelSelector: "app=p"})
			require.NoError(t, err)
			defer w.Stop()
			if _, err := api.Create(ctx, pod("p"), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := api.Create(ctx, pod("other"), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := api.Create(ctx, pod("p"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
				t.Errorf("creating it twice: %v", err)
			}
			binding := &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"},
				Target: v1.ObjectReference{Name: "n"}}
			require.NoError(t, api.Bind(ctx, binding, metav1.CreateOptions{}))
			if err := api.Bind(ctx, binding, metav1.CreateOptions{}); !apierrors.IsConflict(err) {
				t.Errorf("binding it twice: %v", err)
			}
			stale := []byte(`{"metadata":{"resourceVersion":"1","annotations":{"k":"v"}}}`)
			if _, err := api.Patch(ctx, "p", types.StrategicMergePatchType, stale,
				metav1.PatchOptions{}); !apierrors.IsConflict(err) {
				t.Errorf("patching another version: %v", err)
			}
			patch := []byte(`{"metadata":{"annotations":{"k":"v"}}}`)
			if _, err := api.Patch(ctx, "p", types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"p", "other"} {
				require.NoError(t, api.Delete(ctx, name, metav1.DeleteOptions{}))
			}
			if _, err := api.Get(ctx, "p", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("getting it after its deletion: %v", err)
			}
			var got []string
			for range 4 {
				e := <-w.ResultChan()
				p, ok := e.Object.(*v1.Pod)
				if !ok {
					t.Fatalf("a watch event of %T", e.Object)
				}
				got = append(got, string(e.Type)+" "+p.Name+" "+p.Spec.NodeName+" "+p.Annotations["k"])
			}
			want := []string{"ADDED p  ", "MODIFIED p n ", "MODIFIED p n v", "DELETED p n v"}
			assert.Equal(t, "events", want, got)
		})
	}
}

func TestObjectsLeaveASelectionByAChange(t *testing.T) {
	t.Parallel()
	s := New()
	client := clients(t, s)[runtime.ContentTypeProtobuf]
	ctx := context.Background()
	w, err := client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{FieldSelector: "status.phase!=Succeeded"})
	require.NoError(t, err)
	defer w.Stop()
	require.NoError(t, s.Create(pod("p")))
	patch := []byte(`{"status":{"phase":"Succeeded"}}`)
	if _, err := client.CoreV1().Pods("default").Patch(ctx, "p", types.MergePatchType, patch, metav1.PatchOptions{},
		"status"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ADDED", "DELETED"} {
		assert.Equal(t, "", want, string((<-w.ResultChan()).Type))
	}
}

func TestAWatchAfterAListMissesNothing(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][]string{"of an empty server": nil, "of one pod": {"first"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New()
			api := clients(t, s)[runtime.ContentTypeProtobuf].CoreV1().Pods("default")
			for _, name := range before {
				require.NoError(t, s.Create(pod(name)))
			}
			list, err := api.List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.NoError(t, s.Create(pod("between")))
			_, err = api.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
			if !apierrors.IsResourceExpired(err) {
				t.Errorf("watching from version %q: error %v, want one that says to list again", list.ResourceVersion, err)
			}
		})
	}
}

func TestDeferredWritesAreAppliedInTheOrderOfTheirContent(t *testing.T) {
	t.Parallel()
	s := New()
	client := clients(t, s)[runtime.ContentTypeProtobuf]
	s.Defer()
	done := make(chan error)
	names := []string{"c", "a", "b"}
	for i, name := range names {
		go func() {
			_, err := client.CoreV1().Pods("default").Create(context.Background(), pod(name), metav1.CreateOptions{})
			done <- err
		}()
		for waiting(s) <= i {
			<-s.Pending()
		}
	}
	if s.Get(pods, types.NamespacedName{Namespace: "default", Name: "a"}) != nil {
		t.Error("a deferred write was applied before its commit")
	}
	for _, name := range []string{"a", "b", "c"} {
		if !s.CommitFirst() || s.Get(pods, types.NamespacedName{Namespace: "default", Name: name}) == nil {
			t.Errorf("pod %s is not the next that is written", name)
		}
	}
	if s.CommitFirst() {
		t.Error("more was committed than waited")
	}
	for range names {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	var got []string
	for _, obj := range s.List(pods) {
		got = append(got, obj.(*v1.Pod).Name)
	}
	assert.Equal(t, "order of creation", []string{"a", "b", "c"}, got)
}

func waiting(s *Server) int {
	s.writes.mu.Lock()
	defer s.writes.mu.Unlock()
	return len(s.writes.pending)
}

func TestCustomResourcesAndDiscovery(t *testing.T) {
	t.Parallel()
	s := New()
	gvr := schema.GroupVersionResource{Group: "example.dev", Version: "v1", Resource: "widgets"}
	s.Register(gvr, "Widget", true)
	client, err := dynamic.NewForConfig(s.RESTConfig())
	require.NoError(t, err)
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": map[string]any{"name": "w", "namespace": "default"},
		"spec": map[string]any{"n": int64(1)},
	}}
	ctx := context.Background()
	if _, err := client.Resource(gvr).Namespace("default").Create(ctx, widget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(gvr).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	if len(list.Items) != 1 || list.Items[0].GetName() != "w" {
		t.Errorf("listed %v", list.Items)
	}
	resources, err := clients(t, s)[runtime.ContentTypeJSON].Discovery().ServerResourcesForGroupVersion("example.dev/v1")
	require.NoError(t, err)
	if len(resources.APIResources) != 1 || resources.APIResources[0].Kind != "Widget" {
		t.Errorf("discovered %v", resources.APIResources)
	}
	if _, err := clients(t,
		s)[runtime.ContentTypeJSON].Discovery().ServerResourcesForGroupVersion("absent.dev/v1"); !apierrors.IsNotFound(err) {
		t.Errorf("discovering a group that is not there: %v", err)
	}
}

func TestAPodMayTakeItsTimeToEnd(t *testing.T) {
	t.Parallel()
	pods := v1.SchemeGroupVersion.WithResource("pods")
	for name, test := range map[string]struct {
		graceful, gone bool
		node           string
		ends, asked    *int64
		phase          v1.PodPhase
		uid            types.UID
		conflict       bool
	}{
		"a pod that runs stays, marked": {graceful: true, node: "n", ends: ptr.To[int64](30)},
		"one that has no node is gone":  {graceful: true, ends: ptr.To[int64](30), gone: true},
		"one that has ended is gone": {graceful: true, node: "n", ends: ptr.To[int64](30), phase: v1.PodFailed,
			gone: true},
		"one that says nothing is gone": {graceful: true, node: "n", gone: true},
		"one that is deleted by force is gone": {graceful: true, node: "n", ends: ptr.To[int64](30),
			asked: ptr.To[int64](0), gone: true},
		"another one of the name is neither": {graceful: true, node: "n", ends: ptr.To[int64](30), uid: "another",
			conflict: true},
		"without graceful deletions each is gone": {node: "n", ends: ptr.To[int64](30), gone: true},
		"one whose deleter has less time is marked": {graceful: true, node: "n", ends: ptr.To[int64](30),
			asked: ptr.To[int64](5)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New()
			s.Graceful = test.graceful
			require.NoError(t, s.Create(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"},
				Spec:   v1.PodSpec{NodeName: test.node, TerminationGracePeriodSeconds: test.ends},
				Status: v1.PodStatus{Phase: test.phase}}))
			options := metav1.DeleteOptions{GracePeriodSeconds: test.asked}
			if test.uid != "" {
				options.Preconditions = &metav1.Preconditions{UID: &test.uid}
			}
			api := clients(t, s)[runtime.ContentTypeProtobuf].CoreV1().Pods("ns")
			var marks []metav1.Time
			for range 2 {
				err := api.Delete(t.Context(), "p", options)
				expected := test.conflict && apierrors.IsConflict(err) || test.gone && apierrors.IsNotFound(err)
				if err != nil && !expected || err == nil && test.conflict {
					t.Fatalf("deleting: %v", err)
				}
				pod, _ := s.Get(pods, types.NamespacedName{Namespace: "ns", Name: "p"}).(*v1.Pod)
				switch marked := pod != nil && pod.DeletionTimestamp != nil; {
				case (pod == nil) != test.gone, marked != (!test.gone && !test.conflict):
					t.Errorf("the pod is %v", pod)
				case marked:
					marks = append(marks, *pod.DeletionTimestamp)
					if want := ptr.Deref(test.asked, *test.ends); *pod.DeletionGracePeriodSeconds != want {
						t.Errorf("it has %d s to end, want %d", *pod.DeletionGracePeriodSeconds, want)
					}
				}
			}
			if len(marks) == 2 && !marks[0].Equal(&marks[1]) {
				t.Errorf("a second deletion moved the end from %v to %v", marks[0], marks[1])
			}
		})
	}
}

func TestADeletionHasPreconditions(t *testing.T) {
	t.Parallel()
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	nodes := v1.SchemeGroupVersion.WithResource("nodes")
	for name, test := range map[string]struct {
		uid, version string
		deleted      bool
	}{
		"none": {deleted: true}, "its own": {uid: "u", version: "is", deleted: true}, "another UID": {uid: "v"},
		"another version": {uid: "u", version: "999"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New()
			s.Register(widgets, "Widget", false)
			widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget",
				"metadata": map[string]any{"name": "x", "uid": "u"}}}
			node := &v1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "x",
				UID: "u"}}
			for _, obj := range []runtime.Object{widget, node} {
				require.NoError(t, s.Create(obj))
			}
			client, err := dynamic.NewForConfig(s.RESTConfig())
			require.NoError(t, err)
			for _, resource := range []schema.GroupVersionResource{widgets, nodes} {
				api := client.Resource(resource)
				known, err := api.Get(t.Context(), "x", metav1.GetOptions{})
				require.NoError(t, err)
				conditions := &metav1.Preconditions{}
				if test.uid != "" {
					conditions.UID = ptr.To(types.UID(test.uid))
				}
				switch test.version {
				case "":
				case "is":
					conditions.ResourceVersion = ptr.To(known.GetResourceVersion())
				default:
					conditions.ResourceVersion = ptr.To(test.version)
				}
				err = api.Delete(t.Context(), "x", metav1.DeleteOptions{Preconditions: conditions})
				if (err == nil) != test.deleted || err != nil && !apierrors.IsConflict(err) {
					t.Errorf("deleting one of %s: %v", resource.Resource, err)
				}
			}
		})
	}
}
