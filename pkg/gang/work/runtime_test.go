package work

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
)

func TestHowLongAPodRuns(t *testing.T) {
	t.Parallel()
	says := func(value string) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{Annotations: map[string]string{wellknown.RunTimeKey: value}}
	}
	limited := func(meta *metav1.ObjectMeta, seconds int64) v1.Pod {
		return v1.Pod{ObjectMeta: *meta, Spec: v1.PodSpec{ActiveDeadlineSeconds: ptr.To(seconds)}}
	}
	kueue := func(seconds string) v1.Pod {
		return v1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{kueueSecondsLabel: seconds}}}
	}
	for name, test := range map[string]struct {
		pod   v1.Pod
		group *metav1.ObjectMeta
		limit time.Duration
		want  time.Duration
	}{
		"a pod that says nothing": {},
		"the pod comes before": {pod: v1.Pod{ObjectMeta: *says("1h")}, group: says("90m"),
			want: time.Hour},
		"a wrong value says nothing": {pod: v1.Pod{ObjectMeta: *says("soon")}},
		"a deadline":                 {pod: limited(&metav1.ObjectMeta{}, 60), want: time.Minute},
		"a limit of Kueue":           {pod: kueue("30"), want: 30 * time.Second},
		"a limit of the controller":  {limit: time.Hour, want: time.Hour},
		"that of the pod is shorter": {pod: limited(&metav1.ObjectMeta{}, 60), limit: time.Hour,
			want: time.Minute},
		"the limit is shorter than what is declared": {pod: limited(says("2h"), 60), want: time.Minute},
		"what is declared is shorter than the limit": {pod: limited(says("10s"), 60), want: 10 * time.Second},
	} {
		var group *schedulingv1alpha1.PodGroup
		if test.group != nil {
			group = &schedulingv1alpha1.PodGroup{ObjectMeta: *test.group}
		}
		if got := RunTime(&test.pod, group, test.limit); got != test.want {
			t.Errorf("%s: it runs for %s, want %s", name, got, test.want)
		}
	}
}

func TestWhenAPodEnds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) *metav1.Time {
		return ptr.To(metav1.NewTime(now.Add(time.Duration(minutes) * time.Minute)))
	}
	scheduled := v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue,
		LastTransitionTime: *at(-3)}}}
	for name, test := range map[string]struct {
		pod   v1.Pod
		run   time.Duration
		want  *metav1.Time
		known bool
	}{
		"nothing is known of one that says nothing": {pod: v1.Pod{Status: v1.PodStatus{StartTime: at(-3)}}},
		"one that runs":                     {v1.Pod{Status: v1.PodStatus{StartTime: at(-3)}}, time.Hour, at(57), true},
		"one that the kubelet has not seen": {v1.Pod{Status: scheduled}, time.Hour, at(57), true},
		"one that was bound just now":       {v1.Pod{}, time.Hour, at(60), true},
		"one that terminates": {v1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: at(1)}}, 0, at(1),
			true},
		"one that should be gone and is there": {v1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: at(-1)}}, 0, at(-1),
			false},
	} {
		var want time.Time
		if test.want != nil {
			want = test.want.Time
		}
		if got, known := EndOf(&test.pod, test.run, now); !got.Equal(want) || known != test.known {
			t.Errorf("%s: it ends at %s, known: %v; want %s, %v", name, got, known, want, test.known)
		}
	}
}

func TestWrongRunTimesAreNamed(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "3", "-1h", "0s", "1000000h", "soon"} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{wellknown.RunTimeKey: value}}}
		if d, bad := DeclaredRunTime(pod); bad == nil || d != 0 {
			t.Errorf("%q is read as %s", value, d)
		}
	}
}

func TestByWhenAPodHasToStart(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return when
	}
	group := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{wellknown.RunTimeKey: "1h"}}}
	for name, test := range map[string]struct {
		deadline, run string
		group         *schedulingv1alpha1.PodGroup
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
