package plugins_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/test/harness/require"
)

const (
	windowKey   = "berth.dev/start-window"
	deadlineKey = "berth.dev/deadline"
)

func windows(a *config.CostOptimizedArgs) {
	a.Windows = []config.PriceWindow{
		{Name: "night", From: "22:00", To: "06:00"},
		{Name: "weekend", Days: []string{"Sat", "Sun"}, From: "00:00", To: "24:00", TimeZone: new("Europe/Berlin"),
			PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"patience": "days"}}},
	}
	a.SetDefaults()
}

// billAt starts the plugin with windows at a time.
func billAt(t *testing.T, now string, all ...runtime.Object) *billed {
	t.Helper()
	passUntil(t, now)
	return bill(t, windows, all...)
}

// passUntil lets virtual time pass until then.
func passUntil(t *testing.T, then string) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, then)
	require.NoError(t, err)
	pass(time.Until(at))
}

// waitingPodNamed is a pod that waits for the window of the night.
func waitingPodNamed(name, deadline string) *st.PodWrapper {
	p := eighth(name).Annotation(windowKey, "night")
	if deadline != "" {
		p.Annotation(deadlineKey, deadline)
	}
	return p
}

// holdsBack has the queue ask for a pod.
func (b *billed) holdsBack(t *testing.T, pod *v1.Pod) {
	t.Helper()
	if status := b.plugin.PreEnqueue(t.Context(), pod); status.IsSuccess() {
		t.Fatal("the pod is let in")
	}
}

// A pod that was let into the queue in time but failed until its window closed goes back to waiting.
func TestPreFilterHoldsBackAPodWhoseWindowHasClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pod := waitingPodNamed("late", "").Obj()
		b := billAt(t, "2026-11-19T06:00:00Z", priced("n", "1"), pod)
		const opens = "2026-11-19T22:00:00Z"
		if rejected := b.Cycle(t, pod).Reasons()[""]; !strings.Contains(rejected, opens) {
			t.Errorf("PreFilter says %q", rejected)
		}
		if event := b.event(t); !strings.Contains(event, opens) {
			t.Errorf("the event is %q", event)
		}
	})
}

func TestEachWaitingPodIsWokenInItsTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		night, sooner := waitingPodNamed("night", "").Obj(), waitingPodNamed("sooner", "2026-11-18T20:00:40Z").Obj()
		b := billAt(t, "2026-11-18T20:00:00Z", night, sooner)
		b.holdsBack(t, night)
		pass(second)
		b.holdsBack(t, sooner) // while the loop that wakes pods sleeps until the night
		passUntil(t, "2026-11-18T20:00:41Z")
		if woken := b.Woken(); !slices.Equal(woken, []string{"sooner"}) {
			t.Errorf("%v are woken, want the pod whose deadline has passed", woken)
		}
		labeled := night.DeepCopy()
		labeled.Labels = map[string]string{"team": "a"}
		if _, err := b.ClientSet().CoreV1().Pods(night.Namespace).Update(t.Context(), labeled,
			metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		passUntil(t, "2026-11-18T22:00:01Z")
		if woken := b.Woken(); !slices.Equal(woken, []string{"night"}) {
			t.Errorf("%v are woken when the window opens, want the pod that was changed meanwhile", woken)
		}
	})
}

func TestWhatAWaitingPodIsQueuedFor(t *testing.T) {
	t.Parallel()
	const deadline = "2026-11-19T03:00:00+05:30"
	for name, tc := range map[string]struct {
		after *st.PodWrapper
		want  fwk.QueueingHint
	}{
		"not for a label": {waitingPodNamed("p", deadline).Label("a", "b"), fwk.QueueSkip},
		"not for the same deadline written differently": {waitingPodNamed("p", "2026-11-18T21:30:00Z"),
			fwk.QueueSkip},
		"for another deadline":                  {waitingPodNamed("p", "2026-11-18T21:31:00Z"), fwk.Queue},
		"for a deadline after the window opens": {waitingPodNamed("p", "2026-11-19T21:30:00Z"), fwk.Queue},
		"for no window":                         {eighth("p"), fwk.Queue},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b := billAt(t, "2026-11-18T20:00:00Z")
				if got := hint(t, b.plugin, 1, tc.after.Obj(), waitingPodNamed("p", deadline).Obj(),
					tc.after.Obj()); got != tc.want {
					t.Errorf("the hint is %v, want %v", got, tc.want)
				}
			})
		})
	}
}
