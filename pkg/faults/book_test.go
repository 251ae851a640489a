package faults

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/gang"
)

const device = "GPU-5d5ba0d0"

func withHealth(health v1.ResourceHealthStatus) *v1.Pod {
	pod := st.MakePod().Name("p").UID("p").Node("n").Obj()
	pod.Status.ContainerStatuses = []v1.ContainerStatus{{AllocatedResourcesStatus: []v1.ResourceStatus{{
		Name: "nvidia.com/gpu", Resources: []v1.ResourceHealth{{ResourceID: device, Health: health}},
	}}}}
	return pod
}

func TestWhatFailsUnderAPod(t *testing.T) {
	t.Parallel()
	works := st.MakePod().Name("p").Node("n").Obj()
	leaves := st.MakeNode().Name("n").Taints([]v1.Taint{{Key: "ToBeDeletedByClusterAutoscaler"}}).Obj()
	ends := st.MakeNode().Name("n").Obj()
	ends.DeletionTimestamp = &metav1.Time{}
	for name, test := range map[string]struct {
		node *v1.Node
		pod  *v1.Pod
		want string
	}{
		"nothing on a node that works":    {st.MakeNode().Name("n").Obj(), works, ""},
		"the node is about to be removed": {leaves, works, "node n has the taint ToBeDeletedByClusterAutoscaler"},
		"the node is being deleted":       {ends, works, "node n is being deleted"},
		"a device that the kubelet calls unhealthy": {st.MakeNode().Name("n").Obj(),
			withHealth(v1.ResourceHealthStatusUnhealthy), device + " of node n does not work"},
		"a device that the kubelet cannot judge": {st.MakeNode().Name("n").Obj(),
			withHealth(v1.ResourceHealthStatusUnknown), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fault := ReadNode(test.node)
			if got := fault.Under(test.pod); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTheBookFollowsWhatFails(t *testing.T) {
	t.Parallel()
	leaves := st.MakeNode().Name("n").Taints([]v1.Taint{{Key: "ToBeDeletedByClusterAutoscaler"}}).Obj()
	b := &Book{}
	for _, step := range []struct {
		name           string
		do             func()
		changed, fails bool
	}{
		{"nothing is known", func() {}, false, false},
		{"a node that works is no news", func() { b.SeeNode(st.MakeNode().Name("n").Obj()) }, false, false},
		{"a node leaves", func() { b.SeeNode(leaves) }, true, true},
		{"it is seen again", func() { b.SeeNode(leaves) }, false, true},
		{"it stays after all", func() { b.SeeNode(st.MakeNode().Name("n").Obj()) }, true, false},
		{"a device fails", func() { b.SeePod(withHealth(v1.ResourceHealthStatusUnhealthy)) }, true, true},
		{"it works again", func() { b.SeePod(withHealth(v1.ResourceHealthStatusHealthy)) }, true, false},
		{"it fails again, and a node leaves", func() {
			b.SeePod(withHealth(v1.ResourceHealthStatusUnhealthy))
			b.SeeNode(leaves)
		}, true, true},
	} {
		step.do()
		if changed, fails := b.Changed(); changed != step.changed || fails != step.fails {
			t.Errorf("%s: changed %v, fails %v; want %v, %v", step.name, changed, fails, step.changed, step.fails)
		}
	}
	nodes, pods := b.Failing()
	if n := nodes["n"]; !n.Leaves() || !slices.Equal(pods, []gang.UID{"p"}) {
		t.Errorf("failing nodes %v and pods %v", nodes, pods)
	}
	b.ForgetPod("p")
	b.LoseNode("n")
	b.DropGone(func(node string) bool { return node == "n" })
	nodes, _ = b.Failing()
	if n := nodes["n"]; n.Under(withHealth(v1.ResourceHealthStatusHealthy)) != "node n is gone" {
		t.Errorf("a node that is gone and still has a pod: %+v", n)
	}
	b.DropGone(func(string) bool { return false })
	if _, fails := b.Changed(); fails {
		t.Error("a node that is gone is remembered without pods")
	}
	b.LoseNode("n")
	b.SeeNode(st.MakeNode().Name("n").Obj())
	if _, fails := b.Changed(); fails {
		t.Error("a node that has come back counts as gone")
	}
}
