package numbering

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gang/ranks"
)

func TestPodsAreNumberedAsTheirControllersNumberThem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                string
		labels, annotations map[string]string
		want                ranks.Index
		none                bool
	}{
		{name: "a pod without numbers", none: true},
		{name: "an indexed Job", annotations: map[string]string{"batch.kubernetes.io/job-completion-index": "3"},
			want: ranks.Index{Set: "owner", Number: 3}},
		{name: "a StatefulSet", labels: map[string]string{"apps.kubernetes.io/pod-index": "2"},
			want: ranks.Index{Set: "owner", Number: 2}},
		{name: "a JobSet", labels: map[string]string{"batch.kubernetes.io/job-completion-index": "1",
			"jobset.sigs.k8s.io/job-global-index": "4", "jobset.sigs.k8s.io/job-index": "0"},
			want: ranks.Index{Block: 4, Number: 1}},
		{name: "a JobSet that numbers the Jobs of each replicated job", labels: map[string]string{
			"batch.kubernetes.io/job-completion-index": "1", "jobset.sigs.k8s.io/job-index": "2",
			"jobset.sigs.k8s.io/replicatedjob-name": "workers"},
			want: ranks.Index{Set: "workers", Block: 2, Number: 1}},
		{name: "the leader of a LeaderWorkerSet, which is the pod of a StatefulSet", labels: map[string]string{
			"leaderworkerset.sigs.k8s.io/worker-index": "0", "leaderworkerset.sigs.k8s.io/group-index": "5",
			"apps.kubernetes.io/pod-index": "5"}, want: ranks.Index{Block: 5}},
		{name: "the master of a PyTorchJob", labels: map[string]string{"training.kubeflow.org/replica-type": "master",
			"training.kubeflow.org/replica-index": "0"}, want: ranks.Index{First: true, Set: "master"}},
		{name: "a worker of an MPIJob", labels: map[string]string{"training.kubeflow.org/replica-type": "worker",
			"training.kubeflow.org/replica-index": "7"}, want: ranks.Index{Set: "worker", Number: 7}},
		{name: "a task of Volcano", labels: map[string]string{"volcano.sh/task-index": "1"},
			annotations: map[string]string{"volcano.sh/task-spec": "worker"}, want: ranks.Index{Set: "worker", Number: 1}},
		{name: "a clique of Grove", labels: map[string]string{"grove.io/podclique": "decode",
			"grove.io/podclique-pod-index": "6"}, want: ranks.Index{Set: "decode", Number: 6}},
		{name: "a pod group of Kueue", labels: map[string]string{"kueue.x-k8s.io/pod-group-pod-index": "9"},
			want: ranks.Index{Number: 9}},
		{name: "a host of a replica of Ray", labels: map[string]string{"ray.io/group": "tpu",
			"ray.io/replica-host-index":         "1",
			"ray.io/worker-group-replica-index": "2"}, want: ranks.Index{Set: "tpu", Block: 2, Number: 1}},
		{name: "a number that is none", labels: map[string]string{"apps.kubernetes.io/pod-index": "two"}, none: true},
		{name: "a negative number", labels: map[string]string{"apps.kubernetes.io/pod-index": "-1"}, none: true},
		{name: "a number that no gang reaches", labels: map[string]string{"apps.kubernetes.io/pod-index": "100000"},
			none: true},
	} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: test.labels, Annotations: test.annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "owner", UID: "1",
				Controller: ptr.To(true)}}}}
		got, numbered := IndexOf(pod)
		if numbered == test.none {
			t.Errorf("%s: numbered is %v", test.name, numbered)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", test.name, diff)
		}
	}
}
