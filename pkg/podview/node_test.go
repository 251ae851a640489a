package podview

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"
)

func TestLeavingAndRemovable(t *testing.T) {
	t.Parallel()
	node := func(taint string, annotations map[string]string) *v1.Node {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
		if taint != "" {
			n.Spec.Taints = []v1.Taint{{Key: taint, Effect: v1.TaintEffectPreferNoSchedule}}
		}
		return n
	}
	for _, taint := range leavingTaints {
		if !Leaving(node(taint, nil)) {
			t.Errorf("a node with the taint %s is not leaving", taint)
		}
	}
	if Leaving(node("nvidia.com/gpu", nil)) || Leaving(node("", nil)) {
		t.Error("a node that stays is leaving")
	}
	deleted := node("", nil)
	deleted.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0)))
	if !Leaving(deleted) {
		t.Error("a node that is being deleted is not leaving")
	}
	for _, key := range keepAnnotations {
		if Removable(node("", map[string]string{key: "true"})) {
			t.Errorf("a node with %s=true is removable", key)
		}
		if !Removable(node("", map[string]string{key: "false"})) {
			t.Errorf("a node with %s=false is not removable", key)
		}
	}
}

// daemonPod is as the DaemonSet controller makes it.
func daemonPod(name, uid string) *v1.Pod {
	node := v1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{"n"}}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "agent", Controller: ptr.To(true)}}},
		Spec: v1.PodSpec{Affinity: &v1.Affinity{
			NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
				NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{node}}}}}}}}
}

func TestAReferenceToADaemonSetAloneMakesNoneOfItsPods(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*v1.Pod)
		want   bool
	}{
		"as the controller makes it": {func(*v1.Pod) {}, true},
		"with selectors of its DaemonSet beside the node": {func(pod *v1.Pod) {
			term := &pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
			term.MatchExpressions = []v1.NodeSelectorRequirement{{Key: "gpu", Operator: v1.NodeSelectorOpExists}}
		}, true},
		"with no node of its own": {func(pod *v1.Pod) { pod.Spec.Affinity = nil }, false},
		"with a choice of nodes": {func(pod *v1.Pod) {
			required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			required.NodeSelectorTerms = append(required.NodeSelectorTerms,
				v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
					{Key: "gpu", Operator: v1.NodeSelectorOpExists}}})
		}, false},
		"of a group that no garbage collector knows": {
			func(pod *v1.Pod) { pod.OwnerReferences[0].APIVersion = "example.com/v1" }, false},
		"of the core group, which has none": {func(pod *v1.Pod) { pod.OwnerReferences[0].APIVersion = "v1" }, false},
		"of a name that no object can have": {func(pod *v1.Pod) { pod.OwnerReferences[0].Name = strings.Repeat("n", 2000) },
			false},
	} {
		pod := daemonPod("p", "1")
		tc.change(pod)
		if got := BelongsToNode(pod); got != tc.want {
			t.Errorf("a pod %s belongs to its node: %t, want %t", name, got, tc.want)
		}
	}
}

func TestInUse(t *testing.T) {
	t.Parallel()
	ordinary := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "ordinary", UID: "1"}}
	daemon := daemonPod("daemon", "2")
	static := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "static", UID: "3",
		Annotations: map[string]string{v1.MirrorPodAnnotationKey: "x"}}}
	leaving := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "leaving", UID: "4",
		DeletionTimestamp: ptr.To(metav1.NewTime(time.Unix(1, 0)))}}
	owned := daemonPod("owned", "5")
	owned.OwnerReferences[0].Controller = nil
	for name, tc := range map[string]struct {
		pods []*v1.Pod
		want bool
	}{
		"an empty node is not":                                         {nil, false},
		"DaemonSet pods, static pods and leaving ones use none":        {[]*v1.Pod{daemon, static, leaving}, false},
		"one ordinary pod is enough":                                   {[]*v1.Pod{daemon, ordinary}, true},
		"a pod that a DaemonSet owns but does not control is ordinary": {[]*v1.Pod{owned}, true},
	} {
		if got := InUse(framework.NewNodeInfo(tc.pods...)); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
