package explain

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/process/schedulerconfig"
	"berth.dev/berth/test/harness/require"
)

// A pod that has just saved is evicted, and the one that would lose more is named with what it would lose.
func TestItSaysWhyThisVictimAndNotThatOne(t *testing.T) {
	t.Parallel()
	c, err := schedulerconfig.Load("../../manifests/replace-default/scheduler-config.yaml")
	require.NoError(t, err)
	running := func(name, on string, saved time.Duration) *v1.Pod {
		p := pod(name, on, "8", 0)
		p.Status.Phase, p.Status.StartTime = v1.PodRunning, &metav1.Time{Time: now.Add(-3 * time.Hour)}
		if saved > 0 {
			p.Annotations = map[string]string{"berth.dev/last-checkpoint": now.Add(-saved).Format(time.RFC3339),
				"berth.dev/restart-cost": "2m"}
		}
		return p
	}
	p := pod("p", "", "8", 10)
	p.Spec.SchedulerName = "default-scheduler"
	objects := []runtime.Object{node("a", "8"), node("b", "8"), running("silent", "a", 0),
		running("saves", "b", 15*time.Minute), p}
	e, err := Pod(Question{Configuration: c, Objects: objects, Pod: p, Now: now})
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, e.WriteTable(&out, 5))
	for _, want := range []string{
		"; evicting default/saves makes room on b.",
		"evicted, as they lose the least that makes room:\n" +
			"  default/saves (priority 0): 2.4 GPU hours, not saved for 15m1s, and 2m0s to come back\n",
		"spared, the cheapest first:\n  default/silent (priority 0): 24.1 GPU hours, not saved since its start 3h0m1s ago\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the explanation is\n%s\nwant %q", out.String(), want)
		}
	}
}
