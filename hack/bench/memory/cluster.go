package main

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/hack/bench/live"
)

// nodesFile is a fleet of three models in three zones.
func nodesFile(nodes int) []byte {
	return fmt.Appendf(nil, `shapes:
- name: node
  count: %d
  labels: {nvidia.com/gpu.count: "8"}
  annotations: {berth.dev/price-per-hour: "27.45"}
  spread:
    nvidia.com/gpu.product: [NVIDIA-H100-80GB-HBM3, NVIDIA-A100-SXM4-80GB, NVIDIA-L40S]
    topology.kubernetes.io/zone: [zone-a, zone-b, zone-c]
  allocatable: {cpu: "96", memory: 1100Gi, pods: "110", nvidia.com/gpu: "8"}
`, nodes)
}

const (
	// maxPerNode bounds the pods that run on a node; every other one has a GPU. Three GPUs stay free.
	maxPerNode = 10
	// kinds is how many kinds of pods run.
	kinds = 50
	// standing is their namespace.
	standing = "standing"
)

// runningPod has its node already; the pods are on the nodes as evenly as can be.
func runningPod(i, nodes int) *v1.Pod {
	kind := int64((i + i/nodes) % kinds)
	requests := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(1000+100*kind, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity((4+kind)<<30, resource.BinarySI),
	}
	if i/nodes%2 == 0 {
		requests["nvidia.com/gpu"] = resource.MustParse("1")
	}
	pod := live.Pod(standing, fmt.Sprintf("pod-%06d", i), "default-scheduler", requests)
	pod.Labels = map[string]string{"app": fmt.Sprintf("app-%d", kind)}
	pod.Spec.NodeName = fmt.Sprintf("node-%d", i%nodes)
	return pod
}

// wavePod differs from every other of the wave in its requests.
func wavePod(namespace string, i int, profile string) *v1.Pod {
	requests := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(1000+int64(i%4000), resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(8<<30+int64(i/4000)<<20, resource.BinarySI),
		"nvidia.com/gpu":  resource.MustParse("1"),
	}
	pod := live.Pod(namespace, fmt.Sprintf("pod-%06d", i), profile, requests)
	pod.Labels = map[string]string{"app": "train"}
	return pod
}
