package plugins_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/box"
)

// pricedFleet is two nodes, one of them cheap, and one with a price that cannot be read.
const pricedFleet = `shapes:
- {name: cheap, count: 1, annotations: {berth.dev/price-per-hour: "2.10"}, allocatable: {cpu: "16", memory: 64Gi}}
- {name: dear, count: 1, annotations: {berth.dev/price-per-hour: "2.90"}, allocatable: {cpu: "16", memory: 64Gi}}
- {name: mispriced, count: 1, annotations: {berth.dev/price-per-hour: "€2"}, allocatable: {cpu: "16", memory: 64Gi}}
`

// hoursConfig is a profile with two windows: one that opens at the time that is filled in, for an hour, and one that
// opens three hours later.
const hoursConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: hours-scheduler
    plugins:
      multiPoint:
        enabled: [{name: CostOptimized, weight: 20}]
    pluginConfig:
      - name: CostOptimized
        args:
          windows:
            - {name: soon, from: %q, to: %q, timeZone: UTC}
            - {name: later, from: %q, to: %q, timeZone: UTC}
`

// TestCheapHours has pods wait for a window and for a deadline, by the clock of the machine, and over a kill of the
// scheduler.
func TestCheapHours(t *testing.T) {
	t.Parallel()
	// How long the control plane takes to start is not known, so no window opens before it has.
	far := time.Now().UTC().Add(6 * time.Hour)
	at := clocks(far)
	config := write(t, fmt.Sprintf(hoursConfig, at[0], at[1], at[2], at[3]))
	b := box.Start(t, pricedFleet, sandbox.Options{NoKubelet: true, SchedulerConfig: config})
	deadline := time.Now().Add(20 * time.Second).Truncate(time.Second)
	for _, pod := range []*v1.Pod{
		hoursPod("at-once", "", time.Time{}),
		hoursPod("by-the-deadline", "later", deadline),
		hoursPod("much-later", "later", time.Time{}),
		hoursPod("no-such-window", "noon", time.Time{}),
	} {
		b.Create(t, pod)
	}
	inTheWindow, opens := awaitWindow(t, b, far)
	b.Told(t, "no-such-window", `"noon" is not one of this profile's price windows: "soon", "later"`)
	b.Told(t, "mispriced-0", "berth.dev/price-per-hour")
	b.KillScheduler(t)
	for name, from := range map[string]time.Time{"at-once": {}, "by-the-deadline": deadline, inTheWindow: opens} {
		// There is room on the node that is cheap.
		if at := boundAt(b.Bound(t, name, "cheap-0")); at.Before(from) {
			t.Errorf("%s was bound at %s, before %s", name, at, from)
		}
	}
	if pod := b.Pod(t, "much-later"); pod.Spec.NodeName != "" {
		t.Errorf("a pod whose window opens in three hours was bound to %s", pod.Spec.NodeName)
	}
}

// clocks are the times of hoursConfig.
func clocks(opens time.Time) [4]string {
	at := func(d time.Duration) string { return opens.Add(d).Format("15:04") }
	return [4]string{at(0), at(time.Hour), at(3 * time.Hour), at(4 * time.Hour)}
}

// awaitWindow moves the windows to the next full minute; the first opens at far, and returns when a pod has been told
// that it waits for that. Where the window opens before, on a slow machine, it does the same with a later one and
// another pod.
func awaitWindow(t *testing.T, b *box.Box, far time.Time) (pod string, opens time.Time) {
	t.Helper()
	for least := 10 * time.Second; least < 10*time.Minute; least *= 2 {
		pod = fmt.Sprint("in-the-window-of-", least)
		b.Create(t, hoursPod(pod, "soon", time.Time{}))
		opens = time.Now().UTC().Add(least).Truncate(time.Minute).Add(time.Minute)
		moveWindows(t, b, far, opens)
		told := 0
		// Time passes without an event, so this asks.
		b.Await(t, pod+" to be told when the window opens", func(ctx context.Context) (bool, error) {
			var err error
			told, err = b.Events(ctx, pod, fmt.Sprintf("it opens at %s", opens.Format(time.RFC3339)))
			return told > 0 || time.Now().After(opens), err
		})
		if told > 0 {
			return pod, opens
		}
		t.Logf("the window of %s has opened before %s was told of it", opens, pod)
		// The next pod must find no window open.
		far = far.Add(time.Minute)
		moveWindows(t, b, opens, far)
		b.Told(t, "much-later", fmt.Sprintf("it opens at %s",
			far.Truncate(time.Minute).Add(3*time.Hour).Format(time.RFC3339)))
	}
	t.Fatal("every window opens before a pod is told of it")
	return "", time.Time{}
}

// moveWindows changes the configuration, and starts the scheduler again with it.
func moveWindows(t *testing.T, b *box.Box, from, to time.Time) {
	t.Helper()
	file := sandbox.Layout(b.Dir()).SchedulerConfig()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	old, now := clocks(from), clocks(to)
	moved := strings.NewReplacer(old[0], now[0], old[1], now[1], old[2], now[2], old[3], now[3]).Replace(string(text))
	if err := os.WriteFile(file, []byte(moved), 0o600); err != nil {
		t.Fatal(err)
	}
	b.KillScheduler(t)
}

// hoursPod is a pod that starts in a window, or after a deadline that is not zero.
func hoursPod(name, window string, deadline time.Time) *v1.Pod {
	p := pod(name, "hours-scheduler", asking(strs{"cpu": "1", "memory": "1Gi"}))
	if window != "" {
		p.Annotations[wellknown.StartWindowKey] = window
	}
	if !deadline.IsZero() {
		p.Annotations[wellknown.DeadlineKey] = deadline.Format(time.RFC3339)
	}
	return p
}

// boundAt is when the pod was scheduled, to the second.
func boundAt(pod *v1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
