package overview

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func ownedBy(kind, name string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "example.com/v1", Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)},
		}
	}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
	return u
}

// lineOf is a workload in one line: what a test compares.
func lineOf(j *Job) string {
	return strings.Join([]string{j.Kind + "/" + j.Name, string(j.State), GPUs(j.MilliGPU), j.Where(), j.Queue.String(),
		j.Why()}, " | ")
}

func TestJobs(t *testing.T) {
	t.Parallel()
	running := func(p *v1.Pod) { p.Status.Phase = v1.PodRunning }
	labelled := func(key, value string) func(*v1.Pod) { return func(p *v1.Pod) { p.Labels[key] = value } }
	refused := func(p *v1.Pod) {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse,
			Message: "0/2 nodes are available: 2 too small."}}
	}
	says := func(condition v1.PodConditionType, message string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: condition, Status: v1.ConditionTrue,
				Message: message})
		}
	}
	inGang := labelled("scheduling.x-k8s.io/pod-group", "g")
	group := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "g"}}
	group.Spec.MinMember = 2
	group.Status.Conditions = []metav1.Condition{{Type: schedulingv1alpha1.PodGroupReserved, Status: metav1.ConditionTrue,
		Message: "3 nodes reserved"}}
	suspended := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "later", UID: "later"}}
	suspended.Spec.Suspend = ptr.To(true)
	admitted := *suspended
	failed := *suspended
	failed.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: v1.ConditionTrue,
		Message: "too many pods failed"}}
	generated := schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "later",
		OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "later", UID: "later"}}}}
	admitted.Spec.Suspend = ptr.To(false)
	workload := func(owner, priority, conditions string) string {
		return `{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {namespace: team, name: job-` + owner + `, uid: w-` + owner +
			`, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: ` + owner + `, uid: u, controller: true}]}, spec: {queueName: q, priority: ` +
			priority + `}, status: {conditions: [` + conditions + `]}}`
	}
	for name, tc := range map[string]struct {
		objects []any
		want    []string
	}{
		"nothing": {},
		"a pod without a controller": {
			[]any{pod("p", "", "nvidia.com/gpu=1", refused)}, []string{"Pod/p | Pending | 1 | - | - | 2 too small"},
		},
		"a pod that is told what it misses": {
			[]any{pod("p", "", "nvidia.com/gpu=1", refused, says(work.DeadlineMissed, "the pod cannot end in time"))},
			[]string{"Pod/p | Pending | 1 | - | - | 2 too small; the pod cannot end in time"},
		},
		"a pod that runs and misses its deadline": {
			[]any{pod("p", "n1", "", running, says(work.DeadlineMissed, "the pod cannot end in time"))},
			[]string{"Pod/p | Running | 0 | n1 | - | the pod cannot end in time"},
		},
		"a pod that was not tried": {[]any{pod("p", "", "")},
			[]string{"Pod/p | Pending | 0 | - | - | not tried yet by berth-scheduler"}},
		"the pods of a Deployment": {[]any{
			node("n1", "nvidia.com/gpu=8"), pod("a", "n1", "nvidia.com/gpu=1", ownedBy("ReplicaSet", "web-5d4"),
				labelled("pod-template-hash", "5d4"), running),
			pod("b", "n1", "nvidia.com/gpu=1", ownedBy("ReplicaSet", "web-5d5"), labelled("pod-template-hash", "5d5"), running),
		}, []string{"Deployment/web | Running | 2 | n1, rack=r1 | - | "}},
		"a ReplicaSet of its own": {[]any{pod("a", "n1", "", ownedBy("ReplicaSet", "web"), running)},
			[]string{"ReplicaSet/web | Running | 0 | n1 | - | "}},
		"part of a Job": {[]any{
			pod("a", "n1", "nvidia.com/gpu=1", ownedBy("Job", "j"), running),
			pod("b", "", "nvidia.com/gpu=1", ownedBy("Job", "j"), refused),
		}, []string{"Job/j | Partial | 2 | n1 | - | 2 too small"}},
		"pods that are about to run": {[]any{pod("a", "n1", "", ownedBy("Job", "j"),
			func(p *v1.Pod) { p.Status.Phase = v1.PodPending })}, []string{"Job/j | Starting | 0 | n1 | - | "}},
		"pods behind gates": {[]any{
			pod("a", "", "", ownedBy("Job", "j"),
				func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "example.com/g"}} }),
		}, []string{"Job/j | Gated | 0 | - | - | held back by scheduling gates: example.com/g"}},
		"a gang of one Job": {[]any{
			group, pod("a", "", "nvidia.com/gpu=8", inGang, ownedBy("Job", "train")), pod("b", "", "nvidia.com/gpu=8", inGang,
				ownedBy("Job", "train")),
		}, []string{"Job/train | Pending | 16 | - | - | not tried yet by berth-scheduler; 3 nodes reserved"}},
		"a gang of two Jobs": {[]any{
			group, pod("a", "", "", inGang, ownedBy("Job", "x")), pod("b", "", "", inGang, ownedBy("Job", "y")),
		}, []string{"PodGroup/g | Pending | 0 | - | - | not tried yet by berth-scheduler; 3 nodes reserved"}},
		"a gang that has ended": {[]any{group,
			pod("a", "n1", "", inGang, func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded })}, nil},
		"a Job that is suspended": {[]any{suspended}, []string{"Job/later | Suspended | 0 | - | - | suspended by its spec"}},
		"one that resumes":        {[]any{suspended, &admitted}, []string{"Job/later | NoPods | 0 | - | - | it has no pods"}},
		"one that has failed":     {[]any{&failed}, nil},
		"a PodGroup without pods": {[]any{group}, []string{"PodGroup/g | NoPods | 0 | - | - | it has no pods"}},
		"a gang whose Job is suspended": {[]any{suspended, &generated},
			[]string{"Job/later | Suspended | 0 | - | - | suspended by its spec"}},
		"a gang of two Jobs that run": {[]any{group, &admitted,
			pod("a", "n1", "", running, inGang, ownedBy("Job", "x")),
			pod("b", "n1", "", running, inGang, ownedBy("Job", "later"))},
			[]string{"PodGroup/g | Running | 0 | n1 | - | "}},
		"a PodGroup whose Job has failed": {[]any{&failed, &generated},
			[]string{"Job/later | NoPods | 0 | - | - | it has no pods, and its Job has failed: too many pods failed"}},
		"a DaemonSet's pods are the node's": {[]any{pod("d", "n1", "", running, func(p *v1.Pod) {
			p.Annotations[v1.MirrorPodAnnotationKey] = "x"
		})}, nil},
		"Kueue's queue, by priority": {[]any{
			suspended, object(t, workload("later", "0", `{type: QuotaReserved, status: "False", message: "couldn't assign flavors"}`)),
			object(t, workload("urgent", "7", "")), object(t, workload("done", "9", `{type: Finished, status: "True"}`)),
		}, []string{"Job/later | Queued | 0 | - | q, position 2 | couldn't assign flavors",
			"Job/urgent | Queued | 0 | - | q, position 1 | waits for Kueue to admit it"}},
		"one that Kueue has admitted": {[]any{
			pod("a", "", "", ownedBy("Job", "j"), refused), object(t, workload("j", "0", `{type: Admitted, status: "True"}`)),
		}, []string{"Job/j | Pending | 0 | - | q | 2 too small"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, j := range newStore(tc.objects...).Cluster(now).Jobs {
				got = append(got, lineOf(&j))
			}
			assert.Equal(t, "workloads", tc.want, got)
		})
	}
}

func TestQueuesOfKueue(t *testing.T) {
	t.Parallel()
	local := object(t, `{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {namespace: team, name: q, uid: q}, spec: {clusterQueue: c},
		status: {pendingWorkloads: 2, admittedWorkloads: 1, flavorsReservation: [{name: f, resources: [{name: cpu, total: "9"}, {name: nvidia.com/gpu, total: "5"}]}]}}`)
	cluster := object(t, `{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: c},
		spec: {resourceGroups: [{flavors: [{name: f, resources: [{name: nvidia.com/gpu, nominalQuota: "4"}]}, {name: g, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]}]},
		status: {flavorsReservation: [{name: f, resources: [{name: nvidia.com/gpu, total: "9", borrowed: "1"}]}]}}`)
	b := newStore(local)
	want := []Queue{{Namespace: "team", Name: "q", ClusterQueue: "c", Pending: 2, Admitted: 1, UsedGPUs: 5, QuotaGPUs: -1,
		BorrowedGPUs: -1}}
	assert.Equal(t, "queues without a right to ClusterQueues", want, b.Cluster(now).Queues)
	set(b, cluster)
	want[0].QuotaGPUs, want[0].BorrowedGPUs = 8, 1
	assert.Equal(t, "queues", want, b.Cluster(now).Queues)
	// What cannot be read is not there.
	set(b, object(t, `{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {namespace: team, name: q, uid: q}, status: {pendingWorkloads: many}}`))
	if got := b.Cluster(now).Queues; len(got) != 0 {
		t.Errorf("queues %v, want none", got)
	}
	// Nor is what was deleted.
	set(b, local)
	b.Delete(cluster)
	want[0].QuotaGPUs, want[0].BorrowedGPUs = -1, -1
	assert.Equal(t, "queues after the ClusterQueue was deleted", want, b.Cluster(now).Queues)
}

func TestAgesOfJobs(t *testing.T) {
	t.Parallel()
	aged := func(d time.Duration) func(*v1.Pod) {
		return func(p *v1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-d)) }
	}
	b := newStore(pod("young", "", "", aged(time.Minute)), pod("old", "", "", aged(time.Hour)),
		pod("runs", "n1", "", aged(2*time.Hour)),
		pod("a", "", "", ownedBy("Job", "j"), aged(time.Second)),
		pod("b", "n", "", ownedBy("Job", "j"), aged(30*time.Second)))
	var got []string
	for _, j := range b.Cluster(now).Jobs {
		got = append(got, j.Name+" "+(time.Duration(j.AgeSeconds)*time.Second).String())
	}
	assert.Equal(t, "ages", []string{"j 30s", "old 1h0m0s", "young 1m0s", "runs 2h0m0s"}, got)
}

func TestNamespacesAndUse(t *testing.T) {
	t.Parallel()
	inGang := func(rank, phase string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Labels["scheduling.x-k8s.io/pod-group"], p.Labels["batch.kubernetes.io/job-completion-index"] = "g", rank
			p.Status.Phase = v1.PodPhase(phase)
		}
	}
	priced := func(n *v1.Node) { n.Annotations = map[string]string{"berth.dev/price-per-hour": "8"} }
	b := newStore(node("n1", "nvidia.com/gpu=8", priced), pod("a", "n1", "nvidia.com/gpu=4", ownedBy("Job", "train"),
		inGang("10", "Running")),
		pod("b", "", "nvidia.com/gpu=4", ownedBy("Job", "train"), inGang("9", "Pending")),
		pod("small", "n1", "nvidia.com/gpu=1"))
	c := b.Cluster(now)
	assert.Equal(t, "use of the node", []Use{{"team/train", 4000}, {"team/small", 1000}}, c.Nodes[0].Use)
	whole := c.Namespaces[0].MicroDollarsPerHour + c.Nodes[0].IdleMicroDollarsPerHour
	if len(c.Namespaces) != 1 || whole < 7_999_990 || whole > 8_000_010 { // each part is rounded
		t.Errorf("namespaces %+v, and %d of the node are idle, want all of its price together", c.Namespaces,
			c.Nodes[0].IdleMicroDollarsPerHour)
	}
	c.Namespaces[0].MicroDollarsPerHour = 0
	assert.Equal(t, "namespaces",
		[]Namespace{{Name: "team", Pods: 2, PendingPods: 1, MilliGPU: 5000, PendingMilliGPU: 4000}},
		c.Namespaces)
}

func TestATreeOfKubernetesOwnGroupsIsOneGang(t *testing.T) {
	t.Parallel()
	member := func(name, group string) *v1.Pod {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
		pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To(group)}
		return pod
	}
	b := newStore(member("a", "a"), member("b", "b"))
	gangs := func(want int) {
		t.Helper()
		if got := len(b.snapshot().gangs); got != want {
			t.Errorf("%d gangs, want %d", got, want)
		}
	}
	gangs(2)
	for _, name := range []string{"a", "b"} {
		set(b, object(t, `{apiVersion: scheduling.k8s.io/v1alpha3, kind: PodGroup, metadata: {namespace: team, name: `+name+`},
			spec: {parentCompositePodGroupName: job}}`))
	}
	set(b, object(t, `{apiVersion: scheduling.k8s.io/v1alpha3, kind: CompositePodGroup, metadata: {namespace: team, name: job}}`))
	gangs(1)
	set(b, member("c", "b"))
	gangs(1)
}
