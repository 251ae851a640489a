package main

import (
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/sandbox"
)

// gpusPerNode is the size of every node.
const gpusPerNode = 8

// sharedPool is the taint of the nodes whose GPUs are shared, and the label by which pods choose them. Clusters that
// share GPUs are set up in such pools. Here it also gives all contenders the same nodes for the same pods, whether they
// know shares or not.
const sharedPool = "pool"

// hardware is a kind of node, at about the list price of a large cloud.
type hardware struct {
	name, instanceType, product, family string
	memoryMiBPerGPU, cores, memoryGiB   int
	dollarsPerHour                      string
	// percent of the nodes are of this kind.
	percent int
}

// hardwareKinds are what the cluster consists of. The last takes what rounding leaves.
var hardwareKinds = []hardware{
	{"h100", "p5.48xlarge", "NVIDIA-H100-80GB-HBM3", "hopper", 81559, 190, 2000, "55.04", 15},
	{"a100", "p4de.24xlarge", "NVIDIA-A100-SXM4-80GB", "ampere", 81920, 94, 1100, "27.45", 30},
	{"l40s", "g6e.48xlarge", "NVIDIA-L40S", "ada-lovelace", 46068, 190, 1500, "30.13", 15},
	{"a10g", "g5.48xlarge", "NVIDIA-A10G", "ampere", 23028, 190, 760, "16.29", 20},
	{"t4", "g4dn.metal", "Tesla-T4", "turing", 15360, 94, 380, "7.82", 20},
}

// sharedHardware is the kind of the shared pool.
var sharedHardware = hardware{"l4", "g6.48xlarge", "NVIDIA-L4", "ada-lovelace", 23034, 190, 760, "13.35", 0}

// sharedNodes is how many of the nodes share their GPUs.
func sharedNodes(nodes int) int { return max(nodes/10, 1) }

// fleet returns the shapes of a cluster of a number of nodes.
func fleet(nodes int) []sandbox.Shape {
	whole := wholeNodes(nodes)
	left := whole
	var shapes []sandbox.Shape
	for i, kind := range hardwareKinds {
		count := whole * kind.percent / 100
		if i == len(hardwareKinds)-1 {
			count = left
		}
		left -= count
		if count > 0 {
			shapes = append(shapes, kind.shape(count))
		}
	}
	shared := sharedHardware.shape(sharedNodes(nodes))
	shared.Labels["berth.dev/gpu-mode"] = "shared"
	shared.Labels[sharedPool] = "shared"
	shared.Taints = []v1.Taint{{Key: sharedPool, Value: "shared", Effect: v1.TaintEffectNoSchedule}}
	return append(shapes, shared)
}

func (h hardware) shape(count int) sandbox.Shape {
	return sandbox.Shape{
		Name:  h.name,
		Count: count,
		Labels: map[string]string{
			v1.LabelInstanceTypeStable:        h.instanceType,
			"karpenter.sh/capacity-type":      "on-demand",
			"nvidia.com/gpu.product":          h.product,
			"nvidia.com/gpu.family":           h.family,
			"nvidia.com/gpu.memory":           strconv.Itoa(h.memoryMiBPerGPU),
			"nvidia.com/gpu.count":            strconv.Itoa(gpusPerNode),
			"nvidia.com/gpu.replicas":         "1",
			"nvidia.com/gpu.sharing-strategy": "none",
		},
		Annotations: map[string]string{"berth.dev/price-per-hour": h.dollarsPerHour},
		Spread: map[string][]string{
			v1.LabelTopologyZone:          {"zone-a", "zone-b", "zone-c"},
			"topology.kubernetes.io/rack": racks(count),
		},
		Allocatable: v1.ResourceList{
			v1.ResourceCPU:    *resource.NewQuantity(int64(h.cores), resource.DecimalSI),
			v1.ResourceMemory: *resource.NewQuantity(int64(h.memoryGiB)<<30, resource.BinarySI),
			gpuResource:       *resource.NewQuantity(gpusPerNode, resource.DecimalSI),
		},
	}
}

// racks gives 16 nodes to a rack.
func racks(nodes int) []string {
	names := make([]string, (nodes+15)/16)
	for i := range names {
		names[i] = fmt.Sprintf("rack-%d", i)
	}
	return names
}

// fleetFile is the fleet in the form that the control plane reads.
func fleetFile(nodes int) ([]byte, error) {
	file, err := yaml.Marshal(map[string]any{"shapes": fleet(nodes)})
	if err != nil {
		return nil, fmt.Errorf("writing the nodes: %w", err)
	}
	return file, nil
}

// wholeNodes is how many nodes are outside the shared pool.
func wholeNodes(nodes int) int { return nodes - sharedNodes(nodes) }
