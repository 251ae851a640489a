package plugins_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagevolume "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/simulation/memapi"
	"berth.dev/berth/test/harness/framework"
)

// goesToTheBest runs a cycle and returns the node, which has to be the best of all that pass.
func (r *rig) goesToTheBest(t *testing.T, when string, pod *v1.Pod) string {
	t.Helper()
	got, err := r.choose(t, r.best, pod)
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	totals := r.totals(t, pod)
	if best := slices.Max(slices.Collect(maps.Values(totals))); totals[got.SuggestedHost] != best {
		t.Errorf("%s, pod %s goes to %s with %d points, want a node with %d", when, pod.Name, got.SuggestedHost,
			totals[got.SuggestedHost], best)
	}
	return got.SuggestedHost
}

func alike(n int) []*v1.Node {
	nodes := make([]*v1.Node, n)
	for i := range nodes {
		nodes[i] = nodeOf(i * len(kinds))
	}
	return nodes
}

func TestANodeThatHasRefusedAPortIsChosenOnceItIsFree(t *testing.T) {
	t.Parallel()
	nodes := alike(300)
	on := podOf("on", 1000, 1024, 0)
	on.Spec.NodeName = nodes[7].Name
	takePort(on)
	r := newRig(t, nodes, on)
	next, other := podOf("next", 1000, 1024, 0), podOf("other", 1000, 1024, 0)
	takePort(next)
	takePort(other)
	other.Spec.Containers[0].Ports[0].HostPort = 81
	for _, when := range []string{"the first time", "when it was refused before"} {
		if node := r.goesToTheBest(t, when, next); node == on.Spec.NodeName {
			t.Errorf("%s, the pod goes to the node where the port is taken", when)
		}
		if node := r.goesToTheBest(t, when, other); node != on.Spec.NodeName {
			t.Errorf("%s, a pod with another port goes to %s, want the node in use", when, node)
		}
	}
	if err := r.sched.Cache.RemovePod(klog.Logger{}, on); err != nil {
		t.Fatal(err)
	}
	busy := podOf("busy", 1000, 1024, 0)
	r.assume(t, busy, on.Spec.NodeName)
	if node := r.goesToTheBest(t, "when the port is free", next); node != on.Spec.NodeName {
		t.Errorf("when the port is free, the pod goes to %s, want the node in use", node)
	}
}

func TestANodeFullOfVolumesIsPassedOverForPodsThatNeedMore(t *testing.T) {
	t.Parallel()
	const driver = "disk.example.com"
	api := memapi.New()
	withVolume := func(name, volume string) *v1.Pod {
		pod := podOf(name, 1000, 1024, 0)
		pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: volume}}}}
		return pod
	}
	for _, volume := range []string{"a", "b", "c"} {
		framework.Create(t, api, &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume},
			Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{
				CSI: &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: volume}}}})
		framework.Create(t, api, &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: volume, Namespace: metav1.NamespaceDefault,
				Annotations: map[string]string{storagevolume.AnnBindCompleted: "yes"}},
			Spec: v1.PersistentVolumeClaimSpec{VolumeName: volume}})
	}
	nodes := alike(300)
	for _, node := range nodes {
		framework.Create(t, api, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node.Name},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: node.Name,
				Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(1))}}}}})
	}
	on := withVolume("on", "a")
	on.Spec.NodeName = nodes[7].Name
	r := newRigOn(t, api, shipped(t), profileName, nodes, on)
	for i, volume := range []string{"b", "b", "c"} {
		pod := withVolume(fmt.Sprint("next-", i), volume)
		if node := r.goesToTheBest(t, "with a volume of its own", pod); node == on.Spec.NodeName {
			t.Errorf("pod %s goes to the node that has as many volumes as it can have", pod.Name)
		}
	}
	if node := r.goesToTheBest(t, "with the same volume", withVolume("same", "a")); node != on.Spec.NodeName {
		t.Errorf("a pod with the volume of the node goes to %s", node)
	}
}
