package work

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/wellknown"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// says returns the metadata of an object with annotations: keys and values in turn.
func says(annotations ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Annotations: map[string]string{}}
	for i := 0; i < len(annotations); i += 2 {
		m.Annotations[annotations[i]] = annotations[i+1]
	}
	return m
}

// runs returns a pod that has started.
func runs(meta metav1.ObjectMeta) *v1.Pod {
	return &v1.Pod{ObjectMeta: meta, Spec: v1.PodSpec{NodeName: "n"},
		Status: v1.PodStatus{StartTime: &metav1.Time{Time: t0}}}
}

// one is the only gang; with the zero ID there is none.
type one struct {
	id    gang.ID
	group *schedulingv1alpha1.PodGroup
	pods  []*v1.Pod
}

func (o *one) ID(*v1.Pod) gang.ID { return o.id }

func (o *one) Group(gang.ID) *schedulingv1alpha1.PodGroup { return o.group }

func (o *one) PodsOf(gang.ID) []*v1.Pod { return o.pods }

func TestWhatPodsSayOfTheirWork(t *testing.T) {
	t.Parallel()
	hour := t0.Add(time.Hour).Format(time.RFC3339)
	for name, test := range map[string]struct {
		pod     *v1.Pod
		group   *metav1.ObjectMeta
		sibling *v1.Pod
		want    Work
	}{
		"nothing": {pod: runs(says()), want: Work{Started: t0}},
		"all": {pod: runs(says(wellknown.LastCheckpointKey, hour, wellknown.CheckpointEveryKey, "30m",
			wellknown.RestartCostKey, "2m", wellknown.ProtectForKey, "5m")),
			want: Work{Started: t0, Saved: []time.Time{t0.Add(time.Hour)}, Every: 30 * time.Minute,
				Restart: 2 * time.Minute, Protected: 5 * time.Minute}},
		"the pod comes before its group": {pod: runs(says(wellknown.RestartCostKey, "2m")),
			group: ptr.To(says(wellknown.RestartCostKey, "9m", wellknown.CheckpointEveryKey, "1h")),
			want:  Work{Started: t0, Restart: 2 * time.Minute, Every: time.Hour}},
		"a checkpoint of the group": {pod: runs(says()), group: ptr.To(says(wellknown.LastCheckpointKey, hour)),
			want: Work{Started: t0, Saved: []time.Time{t0.Add(time.Hour)}}},
		"a checkpoint that another member tells": {pod: runs(says()), group: ptr.To(says()),
			sibling: runs(says(wellknown.LastCheckpointKey, hour)),
			want:    Work{Started: t0, Saved: []time.Time{t0.Add(time.Hour)}}},
		"wrong values say nothing": {pod: runs(says(wellknown.LastCheckpointKey, "now", wellknown.CheckpointEveryKey, "0s",
			wellknown.RestartCostKey, "-2m", wellknown.ProtectForKey, "999999h")), want: Work{Started: t0}},
		"a pod without a node has not started": {pod: &v1.Pod{ObjectMeta: says(wellknown.RestartCostKey, "2m")},
			want: Work{Restart: 2 * time.Minute}},
	} {
		l := &Loss{GPUs: &gpuview.ProfileKeys{}, Gangs: &one{}}
		if test.group != nil {
			l.Gangs = &one{gang.ID{Name: "g"}, &schedulingv1alpha1.PodGroup{ObjectMeta: *test.group}, nil}
		}
		if test.sibling != nil {
			l.Gangs.(*one).pods = []*v1.Pod{test.sibling}
		}
		test.pod.Spec.Containers = []v1.Container{
			{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}}}}
		test.want.MilliGPUs = 8000
		if diff := cmp.Diff(&test.want, l.At(t0.Add(2*time.Hour)).Work(test.pod)); diff != "" {
			t.Errorf("%s: work (-want +got):\n%s", name, diff)
		}
	}
}

func TestCPUsCountWhereThereAreNoGPUs(t *testing.T) {
	t.Parallel()
	pod := runs(says())
	pod.Spec.Containers = []v1.Container{
		{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("1500m")}}}}
	for gpus, want := range map[int64]int64{0: 1500, 1: 0} {
		pod.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = *resource.NewQuantity(gpus, "")
		l := &Loss{GPUs: &gpuview.ProfileKeys{}, Gangs: &one{}}
		if w := l.At(t0).Work(pod); w.MilliCPUs != want || w.MilliGPUs != gpus*1000 {
			t.Errorf("with %d GPUs: %+v", gpus, w)
		}
	}
}

func TestWrongValuesAreNamed(t *testing.T) {
	t.Parallel()
	for key, values := range map[string][]string{
		wellknown.CheckpointEveryKey: {"", "30", "9s", "-1h", "often", "999999h"},
		wellknown.RestartCostKey:     {"", "0s", "-1s", "long"},
		wellknown.ProtectForKey:      {"", "0s", "always"},
	} {
		for _, value := range values {
			meta := says(key, value)
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
			meta := says(wellknown.LastCheckpointKey, test.value)
			allowed := func(wrong *wellknown.BadValue) string {
				if wrong == nil {
					return ""
				}
				return wrong.Allowed
			}
			if got := allowed(Doubtful(runs(meta), now)); got != test.pod {
				t.Errorf("of a pod %q, want %q", got, test.pod)
			}
			if got := allowed(Doubtful(&schedulingv1alpha1.PodGroup{ObjectMeta: meta}, now)); got != test.group {
				t.Errorf("of a PodGroup %q, want %q", got, test.group)
			}
		})
	}
}
