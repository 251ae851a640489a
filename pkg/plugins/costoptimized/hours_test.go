package costoptimized

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	testclock "k8s.io/utils/clock/testing"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/simulation/plugintest"
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
	config.SetDefaultsCostOptimizedArgs(a)
}

func at(t *testing.T, s string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func waitingPodNamed(name, window, deadline string) *st.PodWrapper {
	p := eighth(name).Annotation(windowKey, window)
	if deadline != "" {
		p.Annotation(deadlineKey, deadline)
	}
	return p
}

func TestPreEnqueueHoldsPodsBackUntilTheirHours(t *testing.T) {
	t.Parallel()
	const evening, night = "2026-11-18T20:00:00Z", "2026-11-18T23:00:00Z" // a Wednesday
	for name, tc := range map[string]struct {
		now string
		pod *v1.Pod
		// waits are parts of the message; none if the pod may start.
		waits []string
	}{
		"a pod that names no window starts":              {evening, eighth("p").Obj(), nil},
		"a pod waits for its window":                     {evening, waitingPodNamed("p", "night", "").Obj(), []string{`"night"`, "opens at 2026-11-18T22:00:00Z"}},
		"and starts inside it":                           {night, waitingPodNamed("p", "night", "").Obj(), nil},
		"a deadline before the window opens ends it":     {evening, waitingPodNamed("p", "night", "2026-11-18T22:30:00+01:00").Obj(), []string{"deadline", "2026-11-18T22:30:00+01:00"}},
		"a deadline after the window opens does not":     {evening, waitingPodNamed("p", "night", "2026-11-19T12:00:00Z").Obj(), []string{"opens at 2026-11-18T22:00:00Z"}},
		"a deadline that has passed ends all waiting":    {evening, waitingPodNamed("p", "night", evening).Obj(), nil},
		"a window selects pods by their labels":          {evening, eighth("p").Label("patience", "days").Obj(), []string{`"weekend"`, "opens at 2026-11-21T00:00:00+01:00"}},
		"the window that the pod names counts before it": {night, waitingPodNamed("p", "night", "").Label("patience", "days").Obj(), nil},
		"a window that does not exist is for PreFilter":  {evening, waitingPodNamed("p", "noon", "").Obj(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClusterAt(t, testclock.NewFakeClock(at(t, tc.now)), windows, nil)
			status := c.plugin.PreEnqueue(t.Context(), tc.pod)
			if status.IsSuccess() != (tc.waits == nil) {
				t.Fatalf("PreEnqueue says %v", status)
			}
			for _, part := range tc.waits {
				if !strings.Contains(status.Message(), part) {
					t.Errorf("message %q does not say %q", status.Message(), part)
				}
			}
		})
	}
}

func TestPreFilterRejectsWindowsThatCannotBeUnderstood(t *testing.T) {
	t.Parallel()
	c := newClusterAt(t, testclock.NewFakeClock(at(t, "2026-11-18T23:00:00Z")), windows, []runtime.Object{node("n", "1")})
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		want []string
	}{
		"a window that does not exist": {waitingPodNamed("p", "noon", "").Obj(), []string{windowKey, `"noon"`, `"night", "weekend"`}},
		"an empty name":                {waitingPodNamed("p", "", "").Obj(), []string{windowKey, `""`}},
		"a deadline that is no time":   {waitingPodNamed("p", "night", "tomorrow").Obj(), []string{deadlineKey, `"tomorrow"`, "RFC 3339"}},
		"a deadline without a zone":    {waitingPodNamed("p", "night", "2026-11-18T22:00:00").Obj(), []string{deadlineKey}},
	} {
		_, _, rejected := c.schedule(t, tc.pod)
		for _, part := range tc.want {
			if rejected == nil || !strings.Contains(rejected.Message(), part) {
				t.Errorf("%s: %v does not say %q", name, rejected, part)
			}
		}
	}
	if _, _, rejected := c.schedule(t, waitingPodNamed("p", "night", "").Obj()); rejected != nil {
		t.Errorf("a pod in its window is rejected: %v", rejected)
	}
}

// A pod that was let into the queue in time but failed until its window closed goes back to waiting.
func TestPreFilterHoldsBackAPodWhoseWindowHasClosed(t *testing.T) {
	t.Parallel()
	pod := waitingPodNamed("late", "night", "").Obj()
	c := newClusterAt(t, testclock.NewFakeClock(at(t, "2026-11-19T06:00:00Z")), windows, []runtime.Object{node("n", "1"), pod})
	_, _, rejected := c.schedule(t, pod)
	if rejected == nil || !strings.Contains(rejected.Message(), "2026-11-19T22:00:00Z") {
		t.Errorf("PreFilter says %v", rejected)
	}
	expectEvent(t, c, "2026-11-19T22:00:00Z")
}

func TestWaitingPodsAreToldAndWoken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		told string
		// steps of the clock; the pod is woken after the last and not before.
		steps func(*testclock.FakeClock)
	}{
		"when the window opens": {
			waitingPodNamed("p", "night", "").Obj(), "2026-11-18T22:00:00Z",
			func(c *testclock.FakeClock) { stepMinutes(t, c, 120) },
		},
		"when the deadline passes": {
			waitingPodNamed("p", "night", "2026-11-18T20:03:30Z").Obj(), "2026-11-18T20:03:30Z",
			func(c *testclock.FakeClock) { stepMinutes(t, c, 4) },
		},
		"when the clock is set forward": {
			waitingPodNamed("p", "night", "").Obj(), "2026-11-18T22:00:00Z",
			func(c *testclock.FakeClock) {
				waitForSleeper(t, c)
				c.SetTime(at(t, "2026-11-19T03:00:00Z"))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := testclock.NewFakeClock(at(t, "2026-11-18T20:00:00Z"))
			c := newClusterAt(t, fake, windows, []runtime.Object{tc.pod})
			for range 3 { // the queue may ask again and again
				if status := c.plugin.PreEnqueue(t.Context(), tc.pod); status.IsSuccess() {
					t.Fatal("the pod is let in")
				}
			}
			expectEvent(t, c, tc.told)
			tc.steps(fake)
			expectWoken(t, c, string(tc.pod.UID))
			if status := c.plugin.PreEnqueue(t.Context(), tc.pod); !status.IsSuccess() {
				t.Errorf("the pod is woken and not let in: %v", status)
			}
			if len(c.recorder.Events) > 0 {
				t.Errorf("told more than once: %s", <-c.recorder.Events)
			}
		})
	}
}

// stepMinutes lets time pass as timers see it, and waits between steps until somebody sleeps again.
func stepMinutes(t *testing.T, c *testclock.FakeClock, minutes int) {
	t.Helper()
	for range minutes {
		waitForSleeper(t, c)
		c.Step(time.Minute)
	}
}

func waitForSleeper(t *testing.T, c *testclock.FakeClock) {
	t.Helper()
	plugintest.Await(t, "a sleeper", c.HasWaiters)
}

func expectEvent(t *testing.T, c *cluster, part string) {
	t.Helper()
	if event := next(t, c.recorder.Events, "an event"); !strings.Contains(event, part) {
		t.Errorf("event %q does not say %q", event, part)
	}
}

// A deadline is read again at every look. An offset that is no whole number of hours is another time.Location each time.
func TestADeadlineInAnotherZoneIsToldOnce(t *testing.T) {
	t.Parallel()
	pod := waitingPodNamed("p", "night", "2026-11-19T03:00:00+05:30").Obj()
	c := newClusterAt(t, testclock.NewFakeClock(at(t, "2026-11-18T20:00:00Z")), windows, []runtime.Object{pod})
	if status := c.plugin.PreEnqueue(t.Context(), pod); status.IsSuccess() {
		t.Fatal("the pod is let in")
	}
	expectEvent(t, c, "2026-11-19T03:00:00+05:30")
	if status := c.plugin.PreEnqueue(t.Context(), pod); status.IsSuccess() {
		t.Fatal("the pod is let in")
	}
	if _, tell, next := c.plugin.waiting.due(at(t, "2026-11-18T20:00:00Z")); len(tell) > 0 || !next.Equal(at(t, "2026-11-18T21:30:00Z")) {
		t.Errorf("told again: %v; the next is due at %s", tell, next)
	}
}

func TestWhatAWaitingPodIsQueuedFor(t *testing.T) {
	t.Parallel()
	c := newClusterAt(t, testclock.NewFakeClock(at(t, "2026-11-18T20:00:00Z")), windows, nil)
	const deadline = "2026-11-19T03:00:00+05:30"
	for name, tc := range map[string]struct {
		after *v1.Pod
		want  fwk.QueueingHint
	}{
		"not for a label": {waitingPodNamed("p", "night", deadline).Label("a", "b").Obj(), fwk.QueueSkip},
		"not for the same deadline written differently": {waitingPodNamed("p", "night", "2026-11-18T21:30:00Z").Obj(), fwk.QueueSkip},
		"for another deadline":                          {waitingPodNamed("p", "night", "2026-11-18T21:31:00Z").Obj(), fwk.Queue},
		"for a deadline after the window opens":         {waitingPodNamed("p", "night", "2026-11-19T21:30:00Z").Obj(), fwk.Queue},
		"for no window":                                 {eighth("p").Obj(), fwk.Queue},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.plugin.afterPodChange(klog.Logger{}, tc.after, waitingPodNamed("p", "night", deadline).Obj(), tc.after)
			if err != nil || got != tc.want {
				t.Errorf("the hint is %v (error %v), want %v", got, err, tc.want)
			}
		})
	}
}

func TestAWaitingPodThatIsDeletedIsForgotten(t *testing.T) {
	t.Parallel()
	pod := waitingPodNamed("p", "night", "").Obj()
	fake := testclock.NewFakeClock(at(t, "2026-11-18T20:00:00Z"))
	c := newClusterAt(t, fake, windows, []runtime.Object{pod})
	c.plugin.PreEnqueue(t.Context(), pod)
	expectEvent(t, c, "night")
	c.plugin.waiting.forgetter().OnDelete(pod)
	fake.SetTime(at(t, "2026-11-18T23:00:00Z"))
	if wake, _, next := c.plugin.waiting.due(c.plugin.waiting.now()); len(wake) > 0 || !next.IsZero() {
		t.Errorf("%d pods are due, the next at %s", len(wake), next)
	}
}
