package preempt

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
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

func TestWhatPodsSayOfTheirWork(t *testing.T) {
	t.Parallel()
	hour := t0.Add(time.Hour).Format(time.RFC3339)
	for name, test := range map[string]struct {
		pod     *v1.Pod
		group   *metav1.ObjectMeta
		sibling *v1.Pod
		want    work.Work
	}{
		"nothing": {pod: runs(says()), want: work.Work{Started: t0}},
		"all": {pod: runs(says(wellknown.LastCheckpointKey, hour, wellknown.CheckpointEveryKey, "30m",
			wellknown.RestartCostKey, "2m", wellknown.ProtectForKey, "5m")),
			want: work.Work{Started: t0, Saved: []time.Time{t0.Add(time.Hour)}, Every: 30 * time.Minute,
				Restart: 2 * time.Minute, Protected: 5 * time.Minute}},
		"the pod comes before its group": {pod: runs(says(wellknown.RestartCostKey, "2m")),
			group: ptr.To(says(wellknown.RestartCostKey, "9m", wellknown.CheckpointEveryKey, "1h")),
			want:  work.Work{Started: t0, Restart: 2 * time.Minute, Every: time.Hour}},
		"a checkpoint of the group": {pod: runs(says()), group: ptr.To(says(wellknown.LastCheckpointKey, hour)),
			want: work.Work{Started: t0, Saved: []time.Time{t0.Add(time.Hour)}}},
		"a checkpoint that another member tells": {pod: runs(says()), group: ptr.To(says()),
			sibling: runs(says(wellknown.LastCheckpointKey, hour)),
			want:    work.Work{Started: t0, Saved: []time.Time{t0.Add(time.Hour)}}},
		"wrong values say nothing": {pod: runs(says(wellknown.LastCheckpointKey, "now", wellknown.CheckpointEveryKey, "0s",
			wellknown.RestartCostKey, "-2m", wellknown.ProtectForKey, "999999h")), want: work.Work{Started: t0}},
		"a pod without a node has not started": {pod: &v1.Pod{ObjectMeta: says(wellknown.RestartCostKey, "2m")},
			want: work.Work{Restart: 2 * time.Minute}},
	} {
		known := &members.Directory{Policy: &read.OwnerPolicy{}, Ledger: gang.NewLedger(time.Minute, nil),
			Groups: cache.NewStore(cache.MetaNamespaceKeyFunc)}
		pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		known.Lister = corelisters.NewPodLister(pods)
		l := &Loss{GPUs: &gpuview.ProfileKeys{}, Members: known}
		if test.group != nil {
			test.group.Name = waits.Name
			test.group.Namespace = waits.Namespace
			require.NoError(t, known.Groups.Add(&schedulingv1alpha1.PodGroup{ObjectMeta: *test.group}))
			for i, member := range []*v1.Pod{test.pod, test.sibling} {
				if member != nil {
					member.Namespace, member.Name, member.UID = waits.Namespace, fmt.Sprint("p", i), types.UID(fmt.Sprint("p", i))
					member.Labels = map[string]string{schedulingv1alpha1.PodGroupLabel: waits.Name}
					require.NoError(t, pods.Add(member))
					known.Ledger.Observe(waits, gang.Member{Ref: read.RefOf(member), Ours: true}, t0)
				}
			}
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
		l := &Loss{GPUs: &gpuview.ProfileKeys{}, Members: &members.Directory{Policy: &read.OwnerPolicy{}}}
		if w := l.At(t0).Work(pod); w.MilliCPUs != want || w.MilliGPUs != gpus*1000 {
			t.Errorf("with %d GPUs: %+v", gpus, w)
		}
	}
}
