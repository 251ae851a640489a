package hold

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/waiting"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/test/harness/require"
)

// testMembers knows gangs by the labels of pods.
func testMembers() *members.Directory {
	return &members.Directory{Policy: &read.OwnerPolicy{}, Groups: cache.NewStore(cache.MetaNamespaceKeyFunc)}
}

// testIndex is an index without resources that device classes hand out.
func testIndex() *capacity.Index {
	return capacity.New(&process.Profiles{})
}

// cpuPod asks for a number of CPUs.
func cpuPod(name, cpu string) *v1.Pod {
	return st.MakePod().Namespace("ns").Name(name).UID(name).Req(map[v1.ResourceName]string{v1.ResourceCPU: cpu}).Obj()
}

// cpuNode has a number of CPUs, and pods.
func cpuNode(name, cpu string, pods ...*v1.Pod) fwk.NodeInfo {
	node := framework.NewNodeInfo(pods...)
	node.SetNode(st.MakeNode().Name(name).Capacity(map[v1.ResourceName]string{v1.ResourceCPU: cpu,
		v1.ResourcePods: "110"}).Obj())
	return node
}

func infoOf(t require.TB, pod *v1.Pod) fwk.PodInfo {
	info, err := InfoOf(pod)
	require.NoError(t, err)
	return info
}

// testHolds keeps nothing yet; cycles may be nil.
func testHolds(cycles *gang.Cycles) *Holds {
	p := &Holds{Gate: Gate{Members: testMembers(), Cycles: cycles, Profiles: &process.Profiles{}}}
	p.Gate.Away.Inbox = waiting.NewInbox()
	return p
}
