package gangview

import (
	"strings"
	"testing"
	"time"

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
		{"by single members unless something is said", absent, absent, "", ""},
		{"the pod says it", "8", absent, "8", ""},
		{"the PodGroup says it", absent, "double", steps.Double, ""},
		{"the PodGroup overrides the pod", "8", "double", steps.Double, ""},
		{"a pod with another value", "half", absent, "", `pod annotation berth.dev/grow-by: "half" is not "double" or a whole number from 2 to 100000`},
		{"a PodGroup says it by role", absent, "b=1, a=4", "b=1,a=4", ""},
		{"a pod that says it by role", "a=4,b=1", absent, "", `pod annotation berth.dev/grow-by: "a=4,b=1" is not "double" or a whole number from 2 to 100000`},
		{"a PodGroup with another value", "8", "1", "", `PodGroup g annotation berth.dev/grow-by: "1" is not "double" or a whole number from 2 to 100000, ` +
			`or such numbers by role or group, as in decode=4,prefill=1`},
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

func TestStepsThatDoNotSuitAPodGroup(t *testing.T) {
	t.Parallel()
	const groups = `[{name: decode, copies: 8, minCopies: 4, pods: 2}, {name: prefill, pods: 1}]`
	for _, tc := range []struct{ groups, roles, by, bad string }{
		{groups, "", "decode=4,prefill=1", ""},
		{groups, "", "4", "numbers by group, such as decode=2, because the gang has several groups"},
		{groups, "", "decode=4,router=1", "roles that have a minimum, or groups that are in no copies; router is neither"},
		{"", "decode=4,prefill=1", "decode=4,prefill=1", ""},
		{"", "decode=4", "decode=4,prefill=1", "prefill is neither"},
		{"", "", "1", `"1" is not "double"`},
		{"[{name: a, pods: 0}]", "", "double", "a has no minimum to double"},
	} {
		given := map[string]string{wellknown.GrowByKey: tc.by}
		if tc.groups != "" {
			given[wellknown.GroupsKey] = tc.groups
		}
		if tc.roles != "" {
			given[wellknown.MinMembersByRoleKey] = tc.roles
		}
		_, err := Spec(groupWith(0, given), time.Minute)
		if (err == nil) != (tc.bad == "") || err != nil && !strings.Contains(err.Error(), tc.bad) {
			t.Errorf("%+v: it says %v", tc, err)
		}
	}
}
