package gangview

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang/steps"
	"berth.dev/berth/pkg/wellknown"
)

func TestByWhatStepsAGangGrows(t *testing.T) {
	t.Parallel()
	const absent = "-"
	for _, tc := range []struct {
		name, pod, group string
		want             steps.Size
		bad              string
	}{
		{"by single members unless something is said", absent, absent, 0, ""},
		{"the pod says it", "8", absent, 8, ""},
		{"the PodGroup says it", absent, "double", steps.Double, ""},
		{"the PodGroup overrides the pod", "8", "double", steps.Double, ""},
		{"a pod with another value", "half", absent, 0, `pod annotation berth.dev/grow-by: "half" is not "double" or a whole number from 2 to 100000`},
		{"a PodGroup with another value", "8", "1", 0, `PodGroup g annotation berth.dev/grow-by: "1" is not "double" or a whole number from 2 to 100000`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pod := &v1.Pod{}
			if tc.pod != absent {
				pod.Annotations = map[string]string{wellknown.GrowByKey: tc.pod}
			}
			group := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "g"}}
			if tc.group != absent {
				group.Annotations = map[string]string{wellknown.GrowByKey: tc.group}
			}
			if got := Member(pod, Membership{}, group, true).Steps; got != tc.want {
				t.Errorf("steps of %s, want %s", got, tc.want)
			}
			said := ""
			if _, err := TopologyOf(group, pod); err != nil {
				said = err.Error()
			}
			if said != tc.bad {
				t.Errorf("it says %q, want %q", said, tc.bad)
			}
		})
	}
}
