package gpuview

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/wellknown"
)

// Failing are the GPUs of a node that its agent calls unhealthy.
type Failing struct {
	// UUIDs are those that pods may hold, and Healthy is how many work of those that pods may hold: all, or those that
	// the agent has seen in use.
	UUIDs   []string
	Healthy int
}

// FailingGPUs reads what the agent of a node says of GPUs that do not work. What cannot be read says nothing.
func FailingGPUs(node *v1.Node) Failing {
	value, listed := node.Annotations[wellknown.GPUDevicesKey]
	if !listed {
		return Failing{}
	}
	devices, err := parseGPUs(value)
	if err != nil {
		return Failing{}
	}
	b := &nodeReader{node: node}
	used := b.inUse(publishedCount(devices))
	var f Failing
	for i := range devices {
		d := &devices[i]
		switch {
		case d.MIG || d.Replicas > 1 || used != nil && !slices.Contains(used, d.Index):
		case d.Healthy:
			f.Healthy++
		default:
			f.UUIDs = append(f.UUIDs, d.UUID)
		}
	}
	return f
}

// HeldBy reports whether a pod with that many GPUs holds one that does not work: the others are too few. Which GPU is
// whose only the kubelet knows.
func (f *Failing) HeldBy(gpus int) bool { return len(f.UUIDs) > 0 && gpus > f.Healthy }
