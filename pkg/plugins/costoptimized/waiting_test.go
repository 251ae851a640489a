package costoptimized

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	testclock "k8s.io/utils/clock/testing"

	"berth.dev/berth/test/harness/await"
)

// waker is a scheduler's handle that tells which pods it is to try.
type waker struct {
	fwk.Handle
	woken chan string
}

func (w waker) Activate(_ klog.Logger, pods map[string]*v1.Pod) {
	for _, pod := range pods {
		w.woken <- pod.Name
	}
}

// Timers measure time that passes, and a machine that was suspended finds the clock on the wall far ahead of them.
func TestPodsWakeWhenTheClockIsSetForward(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.November, 18, 20, 0, 0, 0, time.UTC)
	clock := testclock.NewFakeClock(now)
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "p"}}
	w, handle := newWaiting(clock), waker{woken: make(chan string, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.run(ctx, handle)
	}()
	w.add(pod, wait{until: now.Add(2 * time.Hour)})
	await.Until(t, "the loop to sleep", clock.HasWaiters)
	clock.SetTime(now.Add(7 * time.Hour))
	if name := await.Next(t, handle.woken, "the pod to be woken"); name != "p" {
		t.Errorf("pod %s is woken", name)
	}
	cancel()
	await.Next(t, ended, "the end of the loop")
}
