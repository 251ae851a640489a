package informers

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestAFactoryIsInSyncOnceHandlersWereToldOfEverything(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(
		&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}},
		&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}},
		&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	factory := informers.NewSharedInformerFactory(client, 0)
	goOn := make(chan struct{})
	behind := cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		if pod, ok := obj.(*v1.Pod); ok && pod.Name == "b" {
			<-goOn
		}
	}}
	quick := cache.ResourceEventHandlerFuncs{}
	get[cache.ResourceEventHandlerRegistration](t)(Handle(factory, factory.Core().V1().Nodes().Informer(), quick))
	slow := get[cache.ResourceEventHandlerRegistration](t)(Handle(factory, factory.Core().V1().Pods().Informer(), behind))

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	factory.StartWithContext(ctx)
	// The pods themselves are there, as a plain factory would say.
	if !cache.WaitForCacheSync(ctx.Done(), factory.Core().V1().Pods().Informer().HasSynced) {
		t.Fatal("the pods were not read")
	}
	early, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	if synced := factory.WaitForCacheSyncWithContext(early); !errors.Is(synced.AsError(), context.DeadlineExceeded) ||
		slow.HasSynced() {
		t.Errorf("a handler is behind: the factory says %v", synced.AsError())
	}
	stop()
	close(goOn)
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil || !slow.HasSynced() {
		t.Errorf("all handlers were told: the factory says %v", err)
	}
	cancel()
	factory.Shutdown()
}

func TestAFactoryEndsWhileAHandlerIsBehind(t *testing.T) {
	t.Parallel()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}), 0)
	ctx, cancel := context.WithCancel(t.Context())
	ended := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-ctx.Done() }}
	get[cache.ResourceEventHandlerRegistration](t)(Handle(factory, factory.Core().V1().Nodes().Informer(), ended))
	factory.StartWithContext(ctx)
	cancel()
	factory.Shutdown() // returns
}

func TestAHandlerHearsThatAnObjectHasTakenTheNameOfAnother(t *testing.T) {
	t.Parallel()
	const key = "default/a"
	pod := func(uid types.UID, version string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: uid, ResourceVersion: version}}
	}
	for name, tc := range map[string]struct {
		before, after any
		want          []string
	}{
		"a pod that changes":                     {pod("1", "1"), pod("1", "2"), []string{"update 1 1"}},
		"a pod in the place of another":          {pod("1", "1"), pod("2", "2"), []string{"delete 1", "add 2"}},
		"what is no object is an update as well": {key, key, []string{"update"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var heard []string
			uid := func(obj any) string {
				if pod, ok := obj.(*v1.Pod); ok {
					return " " + string(pod.UID)
				}
				return ""
			}
			byUID{cache.ResourceEventHandlerFuncs{
				AddFunc:    func(obj any) { heard = append(heard, "add"+uid(obj)) },
				UpdateFunc: func(before, after any) { heard = append(heard, "update"+uid(before)+uid(after)) },
				DeleteFunc: func(obj any) { heard = append(heard, "delete"+uid(obj)) },
			}}.OnUpdate(tc.before, tc.after)
			assert.Equal(t, "what the handler hears", tc.want, heard)
		})
	}
}

type leading bool

func (l *leading) Leads() bool { return bool(*l) }

func TestASchedulerIsAskedWhetherItLeads(t *testing.T) {
	t.Parallel()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	leads := new(leading)
	Elect(factory, leads)
	election := ElectionOf(factory)
	for _, *leads = range []leading{false, true, false} {
		if got := election.Leads(); got != bool(*leads) {
			t.Errorf("leads: %v, want %v", got, *leads)
		}
	}
	if !ElectionOf(informers.NewSharedInformerFactory(fake.NewClientset(), 0)).Leads() {
		t.Error("a scheduler without an election does not lead")
	}
}

func TestHandlersOfAnInformerAreToldInTurn(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "1"}})
	factory := informers.NewSharedInformerFactory(client, 0)
	told := make(chan string, 8)
	handler := func(name string) cache.ResourceEventHandler {
		return Events(func(before, _ *v1.Node) {
			told <- name + map[bool]string{true: " add", false: " update"}[before == nil]
		}, func(*v1.Node) { told <- name + " delete" })
	}
	// Informers have synced before their watch begins, and the client tells them nothing of what happens in between.
	watched := make(chan struct{})
	begun := sync.OnceFunc(func() { close(watched) })
	client.PrependWatchReactor("nodes", func(action clienttesting.Action) (bool, watch.Interface, error) {
		defer begun()
		w, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		return true, w, err
	})
	nodes := factory.Core().V1().Nodes().Informer()
	first := get[cache.ResourceEventHandlerRegistration](t)(Handle(factory, nodes, handler("first")))
	second := get[cache.ResourceEventHandlerRegistration](t)(Handle(factory, nodes, handler("second")))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	factory.StartWithContext(ctx)
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil || !first.HasSynced() || !second.HasSynced() {
		t.Fatalf("the handlers were not told of the node: %v", err)
	}
	select {
	case <-watched:
	case <-ctx.Done():
		t.Fatal("no watch of nodes has begun")
	}
	if _, err := client.CoreV1().Nodes().Update(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "1",
		Labels: map[string]string{"a": "b"}}}, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, client.CoreV1().Nodes().Delete(ctx, "n", metav1.DeleteOptions{}))
	want := []string{"first add", "second add", "first update", "second update", "first delete", "second delete"}
	var got []string
	for range want {
		select {
		case what := <-told:
			got = append(got, what)
		case <-ctx.Done():
			t.Fatalf("only %q were told", got)
		}
	}
	assert.Equal(t, "told", want, got)
	cancel()
	factory.Shutdown()
}
