package costoptimized

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

func TestStartsWithoutTheRightToReadPriorityClasses(t *testing.T) {
	t.Parallel()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx, cancel := context.WithTimeout(klog.NewContext(t.Context(), logger), 30*time.Second)
	defer cancel()
	client := fake.NewClientset()
	var asked atomic.Int32
	client.PrependReactor("list", "priorityclasses", func(clienttesting.Action) (bool, runtime.Object, error) {
		asked.Add(1)
		return true, nil, apierrors.NewForbidden(schedulingv1.Resource("priorityclasses"), "", nil)
	})
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := priorityClassInformer(ctx, factory)
	factory.StartWithContext(ctx)
	for _, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			t.Fatal("the informer waits for PriorityClasses that it may not read")
		}
	}
	if n := len(informer.GetIndexer().ListKeys()); n != 0 || asked.Load() == 0 {
		t.Errorf("%d classes after %d lists, want none after one", n, asked.Load())
	}
}

func TestTheRightToReadPriorityClassesIsReportedOnceAndMayCome(t *testing.T) {
	t.Parallel()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	log := logger.GetSink().(ktesting.Underlier)
	client := fake.NewClientset(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}})
	var allowed atomic.Bool
	client.PrependReactor("list", "priorityclasses", func(clienttesting.Action) (bool, runtime.Object, error) {
		if allowed.Load() {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(schedulingv1.Resource("priorityclasses"), "", nil)
	})
	source := &classSource{client: client, logger: logger}
	for range 3 {
		list, err := source.list(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.(*schedulingv1.PriorityClassList).Items) != 0 {
			t.Fatalf("list %v, error %v, want an empty list", list, err)
		}
	}
	if n := len(log.GetBuffer().Data()); n != 1 {
		t.Errorf("reported %d times, want once", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	idle, err := source.watch(ctx, metav1.ListOptions{})
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	idle.Stop()
	allowed.Store(true)
	list, err := source.list(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.(*schedulingv1.PriorityClassList).Items) != 1 {
		t.Errorf("list %v, error %v, want the class once it may be read", list, err)
	}
}
