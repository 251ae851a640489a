package gangview

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/wellknown"
)

func TestBackfill(t *testing.T) {
	t.Parallel()
	const absent = "-"
	for _, tc := range []struct {
		name, pod, group string
		want             bool
		podBad, groupBad string
	}{
		{"nobody says so", absent, absent, false, "", ""},
		{"the pod allows it", "allow", absent, true, "", ""},
		{"its PodGroup allows it", absent, "allow", true, "", ""},
		{"a pod with another value", "yes", absent, false, `pod annotation berth.dev/backfill: "yes" is not "allow"`, ""},
		{"a pod with an empty value", "", absent, false, `pod annotation berth.dev/backfill: "" is not "allow"`, ""},
		{"a PodGroup with another value", absent, "Allow", false, "", `PodGroup g annotation berth.dev/backfill: "Allow" is not "allow"`},
		{"a bad value of the PodGroup does not count against the pod's", "allow", "no", true, "", `PodGroup g annotation berth.dev/backfill: "no" is not "allow"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pod := &v1.Pod{}
			if tc.pod != absent {
				pod.Annotations = map[string]string{wellknown.BackfillKey: tc.pod}
			}
			group := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "g"}}
			if tc.group != absent {
				group.Annotations = map[string]string{wellknown.BackfillKey: tc.group}
			}
			if got := MayBackfill(group, pod); got != tc.want {
				t.Errorf("may backfill: %v, want %v", got, tc.want)
			}
			said := ""
			if _, bad := Backfill(pod); bad != nil {
				said = bad.Error()
			}
			if said != tc.podBad {
				t.Errorf("of the pod: %q, want %q", said, tc.podBad)
			}
			said = ""
			if _, err := Spec(group, 0); err != nil {
				said = err.Error()
			}
			if said != tc.groupBad {
				t.Errorf("of the PodGroup: %q, want %q", said, tc.groupBad)
			}
		})
	}
}
