package explain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/leak"
	"berth.dev/berth/test/harness/require"
)

func TestMain(m *testing.M) { leak.Main(m) }

var now = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

func shipped(t *testing.T) *schedulerconfig.Configuration {
	t.Helper()
	c, err := schedulerconfig.Shipped()
	require.NoError(t, err)
	return c
}

func resources(cpu, gpus string) v1.ResourceList {
	return v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("64Gi"),
		"nvidia.com/gpu": resource.MustParse(gpus), "pods": resource.MustParse("110")}
}

func node(name, gpus string, taints ...v1.Taint) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4",
			"nvidia.com/gpu.count": gpus}},
		Spec: v1.NodeSpec{Taints: taints},
		Status: v1.NodeStatus{Capacity: resources("32", gpus), Allocatable: resources("32", gpus),
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}},
	}
}

func pod(name, on, gpus string, priority int32) *v1.Pod {
	requests := resources("1", gpus)
	delete(requests, "pods")
	requests["memory"] = resource.MustParse("1Gi")
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: v1.PodSpec{NodeName: on, SchedulerName: "gpu-aware-scheduler", Priority: &priority,
			Containers: []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{Requests: requests,
				Limits: requests}}}},
		Status: v1.PodStatus{Phase: map[bool]v1.PodPhase{true: v1.PodPending, false: v1.PodRunning}[on == ""]},
	}
}

// ofGang is a pod of the gang g, which starts with a minimum of members.
func ofGang(name, on, gpus, minimum string) *v1.Pod {
	p := pod(name, on, gpus, 0)
	p.Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io/name": "g",
		"pod-group.scheduling.sigs.k8s.io/min-available": minimum}
	return p
}

func ask(t *testing.T, p *v1.Pod, objects ...runtime.Object) *Explanation {
	t.Helper()
	e, err := Pod(Question{Configuration: shipped(t), Objects: objects, Pod: p, Now: now})
	require.NoError(t, err)
	return e
}

func TestAPodIsExplained(t *testing.T) {
	t.Parallel()
	taint := v1.Taint{Key: "team", Value: "x", Effect: v1.TaintEffectNoSchedule}
	gang := func(n int, gpus string) []runtime.Object {
		objects := []runtime.Object{node("a", "8"), node("b", "8")}
		for i := range n {
			objects = append(objects, ofGang(fmt.Sprintf("g-%d", i), "", gpus, "3"))
		}
		return objects
	}
	// The pods of a Job that asks for a gang, and those of a LeaderWorkerSet, whose minimum stands on them.
	job := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "j", UID: "j"},
		Spec:       batchv1.JobSpec{Parallelism: ptr.To[int32](3)}}
	ofJob := []runtime.Object{node("a", "8"), node("b", "8"), job}
	ofSet := []runtime.Object{node("a", "8"), node("b", "8"),
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "leaderworkerset.x-k8s.io/v1",
			"kind": "LeaderWorkerSet", "metadata": map[string]any{"name": "s", "namespace": "default"},
			"spec": map[string]any{"leaderWorkerTemplate": map[string]any{"size": int64(2)}}}}}
	// Of MPIJobs there are two versions.
	ofMPI := []runtime.Object{node("a", "8"), node("b", "8"),
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "MPIJob",
			"metadata": map[string]any{"name": "m", "namespace": "default", "uid": "m"},
			"spec":     map[string]any{"mpiReplicaSpecs": map[string]any{"Worker": map[string]any{"replicas": int64(2)}}}}}}
	for i := range 3 {
		member := pod(fmt.Sprintf("m-%d", i), "", "4", 0)
		member.Annotations = map[string]string{"berth.dev/gang": "true"}
		member.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kubeflow.org/v1", Kind: "MPIJob", Name: "m", UID: "m",
			Controller: ptr.To(true)}}
		ofMPI = append(ofMPI, member)
		p := pod(fmt.Sprintf("j-%d", i), "", "4", 0)
		p.Annotations = map[string]string{"berth.dev/gang": "true"}
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
		ofJob = append(ofJob, p)
		worker := pod(fmt.Sprintf("s-%d", i), "", "4", 0)
		worker.Annotations = map[string]string{"berth.dev/gang": "true", "leaderworkerset.sigs.k8s.io/size": "2"}
		worker.Labels = map[string]string{"leaderworkerset.sigs.k8s.io/name": "s",
			"leaderworkerset.sigs.k8s.io/group-key":   fmt.Sprint("k", i/2),
			"leaderworkerset.sigs.k8s.io/group-index": fmt.Sprint(i / 2)}
		worker.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(worker,
			appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
		ofSet = append(ofSet, worker)
	}
	gated := pod("p", "", "1", 0)
	gated.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "quota"}}
	share := func(on string) *v1.Pod {
		p := pod("p", on, "0", 0)
		p.Annotations = map[string]string{"alibabacloud.com/gpu-milli": "300"}
		return p
	}
	sharing := node("a", "8")
	sharing.Labels["berth.dev/gpu-mode"] = "shared"
	enforcing := sharing.DeepCopy()
	enforcing.Labels["berth.dev/gpu-agent"] = "limiter"
	policy := func(name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "berth.dev/v1alpha1",
			"kind": "PlacementPolicy", "metadata": map[string]any{"name": name}, "spec": spec}}
	}
	labelled := func(name, key, value string) *v1.Node {
		n := node(name, "8")
		n.Labels[key] = value
		return n
	}
	onEU := map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"region": "eu"}}}
	europe := policy("tenants",
		map[string]any{"compliance": map[string]any{"rules": []any{map[string]any{"name": "europe", "nodes": onEU}}}})
	data := policy("data", map[string]any{"datasets": []any{map[string]any{"name": "imagenet", "nodes": onEU}}})
	reader := pod("p", "", "1", 0)
	reader.Annotations = map[string]string{"berth.dev/datasets": "imagenet"}
	licensed := pod("p", "", "1", 0)
	licensed.Annotations = map[string]string{"berth.dev/licenses": "matlab"}
	addressed := pod("p", "", "1", 0)
	addressed.Annotations = map[string]string{"berth.dev/ip-pool": "racks"}
	pool := policy("racks", map[string]any{"subnets": []any{map[string]any{
		"domain": map[string]any{"key": "rack", "value": "r1"}, "ranges": []any{"10.0.0.1"}}}})
	pool.SetKind("IPPool")
	for _, tt := range []struct {
		name    string
		pod     *v1.Pod
		objects []runtime.Object
		want    string // the verdict
		table   []string
	}{
		{"two nodes fit and one is fuller", pod("p", "", "1", 0), []runtime.Object{node("a", "8"), node("b", "8"),
			pod("q", "a", "7", 0), node("c", "8", taint)},
			"a wins: it wastes ", []string{"TaintToleration", "untolerated taint", "for b to win"}},
		{"equal nodes and a worse one", pod("p", "", "1", 0), []runtime.Object{node("a", "8"), node("b", "8"), node("c", "8"),
			pod("q", "a", "7", 0), pod("r", "b", "7", 0)},
			"a wins (1 other node is as good): it wastes ", []string{" a           1 ", "for c to win"}},
		{"equal nodes", pod("p", "", "1", 0), []runtime.Object{node("a", "8"), node("b", "8")},
			"a wins by chance: the 2 nodes that fit are equally good", nil},
		{"no node fits, one nearly", pod("p", "", "8", 0), []runtime.Object{node("a", "8"), node("b", "4"),
			pod("q", "a", "2", 0)},
			"No node fits: of 2 nodes, ",
			[]string{" a                   nvidia.com/gpu     6       8", "GPUAware", "preemption: "}},
		{"room can be made", pod("p", "", "8", 10), []runtime.Object{node("a", "8"), pod("q", "a", "2", 0)},
			"; evicting default/q makes room on a.", nil},
		{"a bound pod on the best node", pod("p", "a", "1", 0), []runtime.Object{pod("p", "a", "1", 0), node("a", "8"),
			node("b", "4", taint)}, "a wins: no other node fits", []string{"bound to a"}},
		{"a share of a GPU", share(""), []runtime.Object{sharing}, "a wins: ",
			[]string{"its share of a GPU on a is accounting only"}},
		{"a share of a GPU that is bound", share("a"), []runtime.Object{share("a"), enforcing}, "a wins: ",
			[]string{"its share of a GPU on a is enforced by limiter, says the node's label berth.dev/gpu-agent"}},
		{"a placement policy that keeps it off a node", pod("p", "", "1", 0), []runtime.Object{labelled("a", "region", "eu"),
			node("b", "8"), europe},
			"a wins: no other node fits",
			[]string{"PlacementPolicy", "rule europe of placement policy tenants does not allow"}},
		{"data that is near a node", reader, []runtime.Object{labelled("a", "region", "eu"), node("b", "8"), data},
			"a wins: ",
			[]string{"% of the data", "distance"}},
		{"a license that no node offers", licensed, []runtime.Object{node("a", "8")}, "",
			[]string{"no placement policy has a license matlab"}},
		{"a pool of addresses that are routable on one node", addressed, []runtime.Object{labelled("a", "rack", "r1"),
			node("b", "8"), pool},
			"a wins: no other node fits", []string{"IPReservation", "outside the domains of pool racks"}},
		{"a pool of addresses that does not exist", addressed, []runtime.Object{node("a", "8")}, "",
			[]string{"there is no IPPool racks"}},
		{"a gated pod", gated, []runtime.Object{gated, node("a", "8")},
			"It is not tried yet: waiting for scheduling gates: [quota].", []string{"kept out of the queue by SchedulingGates"}},
		{"a gang that fits", gang(3, "4")[2].(*v1.Pod), gang(3, "4"), "Its gang starts as a whole: ",
			[]string{"at least 3 together; 3 pending", " a           g-0, g-1"}},
		{"a gang that does not fit", gang(3, "8")[3].(*v1.Pod), gang(3, "8"),
			"It waits: gang default/g needs 3 × 8 nvidia.com/gpu, fits 2", []string{"shows this pod alone"}},
		{"a gang whose members do not all exist", gang(2, "1")[2].(*v1.Pod), gang(2, "1"),
			"It waits: gang default/g has 2 of the 3 members", nil},
		{"a gang of a Job", ofJob[3].(*v1.Pod), ofJob, "Its gang starts as a whole: ",
			[]string{"at least 3 together; 3 pending", " a           j-0, j-1"}},
		{"a gang of an MPIJob", ofMPI[3].(*v1.Pod), ofMPI, "Its gang starts as a whole: ",
			[]string{"at least 3 together; 3 pending"}},
		{"a gang of a Job that is not known", ofJob[3].(*v1.Pod), slices.Concat(ofJob[:2], ofJob[3:]), "does not exist", nil},
		{"a gang of a LeaderWorkerSet", ofSet[3].(*v1.Pod), ofSet, "Its gang starts as a whole: ",
			[]string{"at least 2 together; 2 pending"}},
		{"a gang of a LeaderWorkerSet that is not complete", ofSet[5].(*v1.Pod), ofSet, "has 1 of the 2 members", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := ask(t, tt.pod, tt.objects...)
			if got := e.Verdict; !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q in it", got, tt.want)
			}
			assert.Contains(t, onPaper(t, e, 10), tt.table...)
			for _, n := range e.Nodes {
				total := int64(0)
				for _, s := range n.Scores {
					total += s.Weighted
					if s.Weighted != s.Normalised*s.Weight {
						t.Errorf("node %s: %s: %d × %d is not %d", n.Name, s.Plugin, s.Normalised, s.Weight, s.Weighted)
					}
				}
				if total != n.Total {
					t.Errorf("node %s: the scores add up to %d, the total is %d", n.Name, total, n.Total)
				}
			}
		})
	}
}

func TestDistanceIsExplained(t *testing.T) {
	t.Parallel()
	racked := func(name, rack string) *v1.Node {
		n := node(name, "8")
		n.Labels["topology.kubernetes.io/rack"] = rack
		return n
	}
	p, sibling := pod("p", "", "1", 0), pod("sibling", "a", "0", 0)
	p.Spec.SchedulerName = "berth-scheduler"
	p.Labels = map[string]string{"app": "a"}
	sibling.Labels = p.Labels
	c := shipped(t)
	for _, profile := range c.Component.Profiles {
		for _, of := range profile.PluginConfig {
			if args, ok := of.Args.(*config.NetworkTopologyArgs); ok {
				args.AppLabel = new("app")
			}
		}
	}
	e, err := Pod(Question{Configuration: c, Pod: p, Now: now,
		Objects: []runtime.Object{racked("a", "r1"), racked("b", "r1"), racked("c", "r2"), sibling}})
	require.NoError(t, err)
	got := map[string]string{}
	for _, n := range e.Nodes {
		for _, s := range n.Scores {
			if s.Plugin == "NetworkTopology" && s.Cost != nil {
				got[n.Name] = fmt.Sprintf("%g %s", s.Cost.Total, s.Cost.Unit)
				for _, term := range s.Cost.Terms {
					got[n.Name] += ", " + term.Name
				}
			}
		}
	}
	want := map[string]string{
		"a": "4 microseconds per MiB, same node", "b": "25 microseconds per MiB, same leaf",
		"c": "32000 microseconds per MiB, apart",
	}
	assert.Equal(t, "the terms of NetworkTopology", want, got)
}

func TestFilesOfTheSchedulersMachineAreNotNeeded(t *testing.T) {
	t.Parallel()
	c, err := schedulerconfig.Load("../../manifests/extender/stock-scheduler-config.yaml")
	require.NoError(t, err)
	p := pod("p", "", "1", 0)
	p.Spec.SchedulerName = v1.DefaultSchedulerName
	e, err := Pod(Question{Pod: p, Configuration: c, Objects: []runtime.Object{node("n", "8")}, Now: now})
	require.NoError(t, err)
	if note := "the configuration's 1 extender was not asked"; !slices.Contains(e.Notes, note) {
		t.Errorf("notes %q, want %q among them", e.Notes, note)
	}
}

func TestAQuestionWithoutAnAnswerIsAnError(t *testing.T) {
	t.Parallel()
	ended := pod("p", "a", "1", 0)
	ended.Status.Phase = v1.PodSucceeded
	for _, tt := range []struct {
		name, want string
		pod        *v1.Pod
		objects    []runtime.Object
	}{
		{"a pod that has ended", "has ended (Succeeded)", ended, []runtime.Object{node("a", "8")}},
		{"no nodes", "the cluster has no nodes", pod("p", "", "1", 0), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Pod(Question{Configuration: shipped(t), Objects: tt.objects, Pod: tt.pod, Now: now})
			assert.Contains(t, fmt.Sprint(err), tt.want)
		})
	}
}

func TestTheSuggestedWeightIsTheNearestThatWins(t *testing.T) {
	t.Parallel()
	winner := &Node{Name: "w", Total: 20*80 + 5*50,
		Scores: []Score{{Plugin: "A", Normalised: 80, Weight: 20, Weighted: 1600}, {Plugin: "B", Normalised: 50, Weight: 5,
			Weighted: 250}}}
	second := &Node{Name: "s", Total: 20*60 + 5*90,
		Scores: []Score{{Plugin: "A", Normalised: 60, Weight: 20, Weighted: 1200}, {Plugin: "B", Normalised: 90, Weight: 5,
			Weighted: 450}}}
	got := compare(winner, second)
	// 200 points behind: A at 9 gives 220 less to the winner, at 10 exactly 200; B at 11 gives 240 more, at 10 exactly
	// 200.
	want := []WeightChange{{Plugin: "B", From: 5, To: 11}, {Plugin: "A", From: 20, To: 9}}
	assert.Equal(t, "changes", want, got.Changes)
}
