package work

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/wellknown"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestWrongValuesAreNamed(t *testing.T) {
	t.Parallel()
	for key, values := range map[string][]string{
		wellknown.CheckpointEveryKey: {"", "30", "9s", "-1h", "often", "999999h"},
		wellknown.RestartCostKey:     {"", "0s", "-1s", "long"},
		wellknown.ProtectForKey:      {"", "0s", "always"},
	} {
		for _, value := range values {
			meta := metav1.ObjectMeta{Annotations: map[string]string{key: value}}
			if _, wrong := Declared(&v1.Pod{ObjectMeta: meta}); wrong == nil || wrong.Key != key || wrong.Value != value {
				t.Errorf("%s %q of a pod: %v", key, value, wrong)
			}
			_, wrong := Declared(&schedulingv1alpha1.PodGroup{ObjectMeta: meta})
			if wrong == nil || wrong.Key != key || wrong.Value != value {
				t.Errorf("%s %q of a PodGroup: %v", key, value, wrong)
			}
		}
	}
}

func TestCheckpointsThatDoNotCountAreTold(t *testing.T) {
	t.Parallel()
	now := t0.Add(time.Hour)
	for name, test := range map[string]struct {
		value, pod, group string
	}{
		"a good one":            {value: t0.Add(time.Minute).Format(time.RFC3339)},
		"a clock that is ahead": {value: now.Add(30 * time.Second).Format(time.RFC3339)},
		"of the future": {value: now.Add(2 * time.Minute).Format(time.RFC3339), pod: "a time in the past",
			group: "a time in the past"},
		"from before the pod": {value: t0.Add(-time.Second).Format(time.RFC3339), pod: "after the start of the pod"},
		"a date without a time": {value: "2026-01-01", pod: "a time such as 2026-11-27T09:30:00Z",
			group: "a time such as 2026-11-27T09:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			meta := metav1.ObjectMeta{Annotations: map[string]string{wellknown.LastCheckpointKey: test.value}}
			allowed := func(wrong *wellknown.BadValue) string {
				if wrong == nil {
					return ""
				}
				return wrong.Allowed
			}
			pod := &v1.Pod{ObjectMeta: meta, Status: v1.PodStatus{StartTime: &metav1.Time{Time: t0}}}
			if got := allowed(Doubtful(pod, now)); got != test.pod {
				t.Errorf("of a pod %q, want %q", got, test.pod)
			}
			if got := allowed(Doubtful(&schedulingv1alpha1.PodGroup{ObjectMeta: meta}, now)); got != test.group {
				t.Errorf("of a PodGroup %q, want %q", got, test.group)
			}
		})
	}
}
