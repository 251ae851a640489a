package runview

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/runtimes"
	"berth.dev/berth/pkg/wellknown"
)

func TestWhatPodsSayOfTheirRunTime(t *testing.T) {
	t.Parallel()
	says := func(value string) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{Annotations: map[string]string{wellknown.RunTimeKey: value}}
	}
	job := v1.PodSpec{RestartPolicy: v1.RestartPolicyNever}
	owned := func(kind string) metav1.ObjectMeta {
		return metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: "o", Controller: ptr.To(true)}}}
	}
	for name, test := range map[string]struct {
		pod   v1.Pod
		group *metav1.ObjectMeta
		want  runtimes.Claim
	}{
		"a job that says nothing": {pod: v1.Pod{Spec: job}},
		"a pod that declares": {pod: v1.Pod{ObjectMeta: *says("3h"), Spec: job},
			want: runtimes.Claim{Expected: 3 * time.Hour}},
		"a pod whose group declares": {pod: v1.Pod{Spec: job}, group: says("90m"),
			want: runtimes.Claim{Expected: 90 * time.Minute}},
		"the pod comes before": {pod: v1.Pod{ObjectMeta: *says("1h"), Spec: job}, group: says("90m"),
			want: runtimes.Claim{Expected: time.Hour}},
		"a wrong value says nothing": {pod: v1.Pod{ObjectMeta: *says("soon"), Spec: job}},
		"a pod that is always there": {pod: v1.Pod{Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyAlways}},
			want: runtimes.Claim{Service: true}},
		"a pod of a service": {pod: v1.Pod{ObjectMeta: owned("StatefulSet"), Spec: job},
			want: runtimes.Claim{Service: true}},
		"a pod of a Job": {pod: v1.Pod{ObjectMeta: owned("Job"), Spec: job}},
		"a deadline": {pod: v1.Pod{Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyNever,
			ActiveDeadlineSeconds: ptr.To[int64](60)}}, want: runtimes.Claim{Limit: time.Minute}},
		"a limit of Kueue": {pod: v1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{kueueLimit: "30"}},
			Spec: job}, want: runtimes.Claim{Limit: 30 * time.Second}},
		"a wrong limit of Kueue": {pod: v1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{kueueLimit: "-30"}},
			Spec: job}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var group metav1.Object
			if test.group != nil {
				group = test.group
			}
			if diff := cmp.Diff(test.want, ClaimOf(&test.pod, group)); diff != "" {
				t.Errorf("claim (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongRunTimesAreNamed(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "3", "-1h", "0s", "1000000h", "soon"} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{wellknown.RunTimeKey: value}}}
		if d, bad := PodRunTime(pod); bad == nil || d != 0 {
			t.Errorf("%q is read as %s", value, d)
		}
	}
}

func TestWhoEndedOnItsOwn(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	bound := v1.PodSpec{NodeName: "n"}
	evicted := v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue}}}
	for name, test := range map[string]struct {
		pod  v1.Pod
		want bool
	}{
		"a pod that is gone":     {v1.Pod{Spec: bound}, true},
		"a pod that never ran":   {v1.Pod{}, false},
		"a pod that was deleted": {v1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}, Spec: bound}, false},
		"a pod that was evicted": {v1.Pod{Spec: bound, Status: evicted}, false},
	} {
		if got := EndedAlone(&test.pod); got != test.want {
			t.Errorf("%s: ended on its own: %v, want %v", name, got, test.want)
		}
	}
}

func TestByWhenAPodHasToStart(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	group := &metav1.ObjectMeta{Annotations: map[string]string{wellknown.RunTimeKey: "1h"}}
	for name, test := range map[string]struct {
		deadline, run string
		group         metav1.Object
		want          Due
		stated        bool
	}{
		"a deadline and a run time": {"2026-01-01T12:00:00Z", "3h", nil,
			Due{at("2026-01-01T12:00:00Z"), at("2026-01-01T09:00:00Z"), 3 * time.Hour}, true},
		"the PodGroup's run time": {"2026-01-01T12:00:00+01:00", "", group,
			Due{at("2026-01-01T12:00:00+01:00"), at("2026-01-01T10:00:00Z"), time.Hour}, true},
		"no run time": {"2026-01-01T12:00:00Z", "", nil,
			Due{at("2026-01-01T12:00:00Z"), at("2026-01-01T12:00:00Z"), 0}, false},
		"no deadline":                    {"", "3h", nil, Due{}, false},
		"a deadline that cannot be read": {"tomorrow", "3h", nil, Due{}, false},
		"a run time that cannot be believed": {"2026-01-01T12:00:00Z", "-3h", nil,
			Due{at("2026-01-01T12:00:00Z"), at("2026-01-01T12:00:00Z"), 0}, false},
	} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
		for key, value := range map[string]string{wellknown.DeadlineKey: test.deadline, wellknown.RunTimeKey: test.run} {
			if value != "" {
				pod.Annotations[key] = value
			}
		}
		got, stated := DueOf(pod, test.group)
		if stated != test.stated || !got.End.Equal(test.want.End) || !got.Start.Equal(test.want.Start) ||
			got.Run != test.want.Run {
			t.Errorf("%s: %+v, %v; want %+v, %v", name, got, stated, test.want, test.stated)
		}
	}
}
