package coscheduling

import (
	v1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

const gpu = v1.ResourceName("nvidia.com/gpu")

func gpuNode(name, gpus string) *st.NodeWrapper {
	return st.MakeNode().Name(name).Capacity(map[v1.ResourceName]string{gpu: gpus, v1.ResourceCPU: "16", v1.ResourcePods: "110"})
}

func gpuPod(name, node, gpus string) *v1.Pod {
	return st.MakePod().Name(name).UID(name).Node(node).Req(map[v1.ResourceName]string{gpu: gpus}).Obj()
}
