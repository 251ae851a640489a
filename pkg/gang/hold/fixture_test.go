package hold

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/process"
)

const gpu = v1.ResourceName("nvidia.com/gpu")

// testMembers knows gangs by the labels of pods.
func testMembers() *members.Directory {
	return &members.Directory{Policy: &read.OwnerPolicy{}, Groups: cache.NewStore(cache.MetaNamespaceKeyFunc)}
}

func testFilters(*v1.Pod) *process.Traits { return process.AllTraits }

// testIndex is an index without resources that device classes hand out.
func testIndex() *capacity.Index {
	return capacity.New(func(v1.ResourceName) bool { return false }, testFilters)
}

// testCluster is 5,000 nodes of 8 GPUs with a pod on each GPU.
func testCluster() *capacity.Index {
	x := testIndex()
	for i := range 5000 {
		name := fmt.Sprintf("n%04d", i)
		x.Feed.SetNode(st.MakeNode().Name(name).Capacity(map[v1.ResourceName]string{gpu: "8", v1.ResourceCPU: "64",
			v1.ResourceMemory: "512Gi", v1.ResourcePods: "110"}).Obj())
		for k := range 8 {
			pod := fmt.Sprintf("p%04d-%d", i, k)
			x.Feed.SetPod(st.MakePod().Name(pod).UID(pod).Node(name).Req(map[v1.ResourceName]string{gpu: "1",
				v1.ResourceCPU:    "4",
				v1.ResourceMemory: "32Gi"}).Obj(), gang.ID{Namespace: "ns", Name: "g"})
		}
	}
	return x
}
