package read

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/wellknown"
)

// Values that cannot be read are told in backfill-bad-value.scenario.
func TestBackfill(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, pod, group string
		want             bool
	}{
		{"the pod allows it", "allow", "", true},
		{"its PodGroup allows it", "", "allow", true},
		{"a bad value of the PodGroup does not count against the pod's", "allow", "no", true},
		{"a bad value allows nothing", "yes", "", false},
	} {
		pod, group := &v1.Pod{}, groupWith(1, map[string]string{})
		if tc.pod != "" {
			pod.Annotations = map[string]string{wellknown.BackfillKey: tc.pod}
		}
		if tc.group != "" {
			group.Annotations[wellknown.BackfillKey] = tc.group
		}
		if got := MayBackfill(group, pod); got != tc.want {
			t.Errorf("%s: may backfill: %v, want %v", tc.name, got, tc.want)
		}
	}
}
