package costoptimized

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// pricedFleet is two nodes of which one is cheap, and one with a price that cannot be read.
const pricedFleet = `shapes:
- {name: cheap, count: 1, annotations: {berth.dev/price-per-hour: "2.10"}, allocatable: {cpu: "16", memory: 64Gi}}
- {name: dear, count: 1, annotations: {berth.dev/price-per-hour: "2.90"}, allocatable: {cpu: "16", memory: 64Gi}}
- {name: mispriced, count: 1, annotations: {berth.dev/price-per-hour: "€2"}, allocatable: {cpu: "16", memory: 64Gi}}
`

// hoursConfig is a profile with two windows: one that opens at the time that is filled in, for an hour, and one that opens three hours
// later.
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

// TestCheapHoursOnARealControlPlane has pods wait for a window and for a deadline, by the clock of the machine, and over a
// kill of the scheduler.
//
//nolint:paralleltest // the parts of the story follow each other on one control plane
func TestCheapHoursOnARealControlPlane(t *testing.T) {
	t.Parallel()
	// How long the control plane takes to start is not known, so no window opens before it has.
	far := time.Now().UTC().Add(6 * time.Hour)
	config := filepath.Join(t.TempDir(), "config.yaml")
	times := clocks(far)
	if err := os.WriteFile(config, fmt.Appendf(nil, hoursConfig, times[0], times[1], times[2], times[3]), 0o600); err != nil {
		t.Fatal(err)
	}
	box := box.Start(t, pricedFleet, sandbox.Options{SchedulerConfig: config, NoKubelet: true})
	deadline := time.Now().Add(20 * time.Second).Truncate(time.Second)
	for _, pod := range []*v1.Pod{
		hoursPod("at-once", "", time.Time{}),
		hoursPod("by-the-deadline", "later", deadline),
		hoursPod("much-later", "later", time.Time{}),
		hoursPod("no-such-window", "noon", time.Time{}),
	} {
		box.Create(t, pod)
	}
	inTheWindow, opens := awaitWindow(t, box, far)
	box.Told(t, "no-such-window", `"noon" is not one of this profile's price windows: "soon", "later"`)
	box.Told(t, "mispriced-0", "berth.dev/price-per-hour")
	box.KillScheduler(t)
	for _, wait := range []struct {
		pod  string
		from time.Time
	}{{"at-once", time.Time{}}, {"by-the-deadline", deadline}, {inTheWindow, opens}} {
		box.Await(t, wait.pod+" to be bound", func(ctx context.Context) (bool, error) {
			pod, err := box.Client.CoreV1().Pods("default").Get(ctx, wait.pod, metav1.GetOptions{})
			if err != nil || pod.Spec.NodeName == "" {
				return false, err
			}
			if at := boundAt(pod); at.Before(wait.from) {
				return false, fmt.Errorf("it was bound at %s, before %s", at, wait.from)
			}
			if pod.Spec.NodeName != "cheap-0" {
				return false, fmt.Errorf("it was bound to %s, and cheap-0 has room", pod.Spec.NodeName)
			}
			return true, nil
		})
	}
	if pod := box.Pod(t, "much-later"); pod.Spec.NodeName != "" {
		t.Errorf("a pod whose window opens in three hours was bound to %s", pod.Spec.NodeName)
	}
}

// clocks are the times of hoursConfig.
func clocks(opens time.Time) [4]string {
	at := func(d time.Duration) string { return opens.Add(d).Format("15:04") }
	return [4]string{at(0), at(time.Hour), at(3 * time.Hour), at(4 * time.Hour)}
}

// awaitWindow moves the windows, of which the first opens at far, to the next full minute, and returns when a pod has been told that it
// waits for that. Where the window opens before, on a slow machine, it does the same with a later one and another pod.
func awaitWindow(t *testing.T, box *box.Box, far time.Time) (pod string, opens time.Time) {
	t.Helper()
	for least := 10 * time.Second; least < 10*time.Minute; least *= 2 {
		pod = fmt.Sprint("in-the-window-of-", least)
		box.Create(t, hoursPod(pod, "soon", time.Time{}))
		opens = time.Now().UTC().Add(least).Truncate(time.Minute).Add(time.Minute)
		moveWindows(t, box, far, opens)
		told := 0
		box.Await(t, pod+" to be told when the window opens", func(ctx context.Context) (bool, error) {
			var err error
			told, err = box.Events(ctx, pod, fmt.Sprintf("it opens at %s", opens.Format(time.RFC3339)))
			return told > 0 || time.Now().After(opens), err
		})
		if told > 0 {
			return pod, opens
		}
		t.Logf("the window of %s has opened before %s was told of it", opens, pod)
		// The next pod must find no window open.
		far = far.Add(time.Minute)
		moveWindows(t, box, opens, far)
		box.Told(t, "much-later", fmt.Sprintf("it opens at %s", far.Truncate(time.Minute).Add(3*time.Hour).Format(time.RFC3339)))
	}
	t.Fatal("every window opens before a pod is told of it")
	return "", time.Time{}
}

// moveWindows changes the configuration, which the scheduler follows.
func moveWindows(t *testing.T, box *box.Box, from, to time.Time) {
	t.Helper()
	file := sandbox.Layout(box.Dir()).SchedulerConfig()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	old, now := clocks(from), clocks(to)
	moved := strings.NewReplacer(old[0], now[0], old[1], now[1], old[2], now[2], old[3], now[3]).Replace(string(text))
	if err := os.WriteFile(file, []byte(moved), 0o600); err != nil {
		t.Fatal(err)
	}
}

// hoursPod is a pod that starts in a window, or after a deadline that is not zero.
func hoursPod(name, window string, deadline time.Time) *v1.Pod {
	p := st.MakePod().Name(name).Namespace("default").SchedulerName("hours-scheduler").
		Req(map[v1.ResourceName]string{"cpu": "1", "memory": "1Gi"})
	if window != "" {
		p.Annotation(windowKey, window)
	}
	if !deadline.IsZero() {
		p.Annotation(deadlineKey, deadline.Format(time.RFC3339))
	}
	return p.Obj()
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
