package plugins_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	storagevolume "k8s.io/component-helpers/storage/volume"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/test/harness/framework"
)

// preferring prefers to be spread, which no class of nodes answers.
func preferring(gpus int) *v1.Pod {
	pod := podOf("p", 1000, 1024, gpus)
	pod.Labels = map[string]string{"app": "a"}
	pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels},
	}}
	return pod
}

// namesSeen are the nodes that the framework is given for a pod; all if nil.
func (r *rig) namesSeen(t *testing.T, pod *v1.Pod) sets.Set[string] {
	t.Helper()
	result, status, _ := r.best.RunPreFilterPlugins(r.ctx, upstream.NewCycleState(), pod)
	if !status.IsSuccess() {
		t.Fatalf("PreFilter: %v", status)
	}
	if result.AllNodes() {
		return nil
	}
	return result.NodeNames
}

func TestPodsWithoutGPUsAreComparedOnTheBestSample(t *testing.T) {
	t.Parallel()
	const nodes, sample = 500, 230 // 50 - 500/125 percent
	r := newRig(t, nodesOf(nodes))
	pod := preferring(0)
	seen := r.namesSeen(t, pod)
	if len(seen) != sample {
		t.Fatalf("the framework is given %d nodes, want %d", len(seen), sample)
	}
	for i := range nodes {
		if node := nodeOf(i); node.Labels["nvidia.com/gpu.count"] == "" && !seen.Has(node.Name) {
			t.Errorf("node %s without GPUs is not in the sample, which has nodes with GPUs", node.Name)
		}
	}
	if got := r.namesSeen(t, preferring(1)); got != nil {
		t.Errorf("for a pod that asks for a GPU the framework is given %d nodes, want all", len(got))
	}
	chosen, err := r.choose(t, r.best, pod)
	if err != nil || !seen.Has(chosen.SuggestedHost) {
		t.Errorf("node %q is chosen (error %v), want one of the sample", chosen.SuggestedHost, err)
	}
	if got := newRig(t, nodesOf(100)).namesSeen(t, pod); got != nil {
		t.Errorf("of 100 nodes the framework is given %d, want all", len(got))
	}
}

func TestASampleHasOnlyNodesThatPass(t *testing.T) {
	t.Parallel()
	const nodes = 500
	r := newRig(t, nodesOf(nodes))
	pod := preferring(0)
	pod.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: "z1"}
	want := sets.New[string]()
	for i := range nodes {
		if node := nodeOf(i); node.Labels[v1.LabelTopologyZone] == "z1" {
			want.Insert(node.Name)
		}
	}
	if got := r.namesSeen(t, pod); !got.Equal(want) {
		t.Errorf("the framework is given %d nodes, want the %d of the zone", len(got), len(want))
	}
	pod.Spec.NodeSelector[v1.LabelTopologyZone] = "nowhere"
	if got := r.namesSeen(t, pod); got != nil {
		t.Errorf("for a pod that fits nowhere the framework is given %d nodes, want all", len(got))
	}
}

func TestPodsWhoseVolumesAreBoundGoToTheBestNodes(t *testing.T) {
	t.Parallel()
	for name, bound := range map[string]bool{"its claim is bound": true, "its claim is not bound": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := memapi.New()
			framework.Create(t, api, &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}})
			claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: metav1.NamespaceDefault},
				Spec: v1.PersistentVolumeClaimSpec{StorageClassName: new("late")}}
			if bound {
				claim.Spec.VolumeName = "disk"
				claim.Annotations = map[string]string{storagevolume.AnnBindCompleted: "yes"}
			}
			framework.Create(t, api, claim)
			framework.Create(t, api, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "late"},
				Provisioner: "example.com/disk", VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer)})
			r := newRigOn(t, api, shipped(t), profileName, nodesOf(200))
			pod := podOf("p", 1000, 1024, 1)
			pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
				PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
			if seen := r.namesSeen(t, pod); (seen != nil) != bound {
				t.Errorf("the framework is given %d nodes (0: all)", len(seen))
			}
		})
	}
}

func TestNearNodesAreInTheSample(t *testing.T) {
	t.Parallel()
	peer := podOf("peer", 1000, 1024, 0)
	peer.Labels, peer.Spec.NodeName = map[string]string{"app.kubernetes.io/part-of": "shop"}, "n00421"
	r := newRigWith(t, drawingApps(t), profileName, nodesOf(600), peer)
	pod := preferring(0)
	pod.Labels = map[string]string{"app.kubernetes.io/part-of": "shop"}
	seen := r.namesSeen(t, pod)
	far := 0
	for i := range 600 {
		node := nodeOf(i)
		switch near := node.Labels["topology.kubernetes.io/rack"] == "r21"; {
		case node.Labels["nvidia.com/gpu.product"] != "Tesla-T4" || seen.Has(node.Name):
		case near:
			t.Errorf("node %s in the rack of the pod's peer is not in the sample of %d", node.Name, len(seen))
		default:
			far++
		}
	}
	if far == 0 {
		t.Error("all nodes of that model are in the sample anyway")
	}
}
