package config

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// +kubebuilder:object:root=true

// NetworkTopologyArgs are the arguments of the NetworkTopology plugin. All distances are the microseconds in which 1
// MiB gets from one pod to another: latency plus size over bandwidth. They must not fall from a level to the next wider
// one. The defaults are those of typical hardware, to be replaced by what you measure.
type NetworkTopologyArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Distance of two pods on one node, in microseconds. From 0 to 60000000 (a minute), default 4.
	SameNodeMicroseconds *int64 `json:"sameNodeMicroseconds,omitempty"`

	// Kinds of domains of the network, the narrowest first; at most 8. A list here replaces all of the default levels,
	// which are listed below.
	Levels []NetworkLevel `json:"levels,omitempty"`

	// Distance between nodes that share no domain of any level. Default 32000 microseconds.
	Apart *NetworkDistance `json:"apart,omitempty"`

	// What a member of a gang exchanges with all other members together, in GiB an hour. With 0, members are not drawn
	// together. From 0 to 1000000, default 1000.
	GangGiBPerHour *int64 `json:"gangGiBPerHour,omitempty"`

	// Key of a pod label. Pods of a namespace with the same value are drawn together. Default none.
	AppLabel *string `json:"appLabel,omitempty"`

	// What a pod exchanges with all other pods of its app together, in GiB an hour. From 1 to 1000000, default 10.
	AppGiBPerHour *int64 `json:"appGiBPerHour,omitempty"`
}

// NetworkLevel is a kind of domain: nodes with the same value of a label are in one domain of the level. A node without
// any of the labels is in none. The default levels, with their microseconds and labels:
//
//   - `nvlink`, 5: `accelerator.topograph.run/domain`, `network.topology.nvidia.com/accelerator`,
//     `nvidia.com/gpu.clique`
//   - `leaf`, 25: `fabric.topograph.run/tier-0`, `network.topology.nvidia.com/leaf`,
//     `network.topology.nvidia.com/block`, `topology.kubernetes.io/rack`, `topology.k8s.aws/network-node-layer-4`,
//     `topology.k8s.aws/network-node-layer-3`, `cloud.google.com/gce-topology-subblock`,
//     `oci.oraclecloud.com/rdma.local_block_id`
//   - `spine`, 45: `fabric.topograph.run/tier-1`, `network.topology.nvidia.com/spine`,
//     `topology.k8s.aws/network-node-layer-2`, `cloud.google.com/gce-topology-block`,
//     `oci.oraclecloud.com/rdma.network_block_id`
//   - `core`, 70: `fabric.topograph.run/tier-2`, `network.topology.nvidia.com/core`,
//     `network.topology.nvidia.com/datacenter`, `topology.k8s.aws/network-node-layer-1`,
//     `oci.oraclecloud.com/rdma.hpc_island_id`
//   - `zone`, 150: `topology.kubernetes.io/zone`
//   - `region`, 2200: `topology.kubernetes.io/region`
type NetworkLevel struct {
	// DNS label that names the level in messages and metrics. Required.
	Name string `json:"name"`
	// Keys of node labels; the first one that a node has counts. At least one is required, and none may be in two
	// levels.
	Labels []string `json:"labels"`
	// NetworkDistance is that of two nodes that share a domain of this level and of no narrower one.
	NetworkDistance `json:",inline"`
}

// NetworkDistance is how far apart two nodes are.
type NetworkDistance struct {
	// Time, in microseconds, in which 1 MiB gets from one node to the other, at least that of the next narrower level.
	// From 0 to 60000000 (a minute), required.
	Microseconds int64 `json:"microseconds"`
}

// DefaultNetworkLevels are the levels of a GPU cluster with labels of topograph, of NVIDIA's network topology, of GPU
// feature discovery, of EKS, GKE or OKE. The distances are typical hardware, to be replaced by what is measured:
//
//   - nvlink: 1 MiB at the 450 GB/s that NVLink 4 moves each way (H100 data sheet: 900 GB/s both ways), and a few
//     microseconds through an NVLink switch;
//   - leaf: 400 Gbit/s (ConnectX-7, NDR InfiniBand) are 21 us for 1 MiB, and 3 to 4 us for two cards and a switch;
//   - spine: the same with two more switches at half the bandwidth, as links above the leaf are commonly oversubscribed
//     2:1;
//   - core: another two switches at a third of the bandwidth;
//   - zone: 100 Gbit/s Ethernet are 84 us, and some 60 us of latency within a data center;
//   - region: one TCP connection between zones of EC2 is limited to 5 Gbit/s (its documentation on instance bandwidth),
//     1.7 ms, and half a millisecond one way is typical between zones some tens of kilometers apart.
//
// Nodes that share nothing are in two regions: 5 Gbit/s again and 30 ms one way, as between the coasts of the United
// States.
func DefaultNetworkLevels() []NetworkLevel {
	return []NetworkLevel{
		{Name: "nvlink", NetworkDistance: NetworkDistance{Microseconds: 5}, Labels: []string{
			"accelerator.topograph.run/domain", "network.topology.nvidia.com/accelerator", "nvidia.com/gpu.clique",
		}},
		{Name: "leaf", NetworkDistance: NetworkDistance{Microseconds: 25}, Labels: []string{
			"fabric.topograph.run/tier-0", "network.topology.nvidia.com/leaf", "network.topology.nvidia.com/block",
			"topology.kubernetes.io/rack", "topology.k8s.aws/network-node-layer-4", "topology.k8s.aws/network-node-layer-3",
			"cloud.google.com/gce-topology-subblock", "oci.oraclecloud.com/rdma.local_block_id",
		}},
		{Name: "spine", NetworkDistance: NetworkDistance{Microseconds: 45}, Labels: []string{
			"fabric.topograph.run/tier-1", "network.topology.nvidia.com/spine",
			"topology.k8s.aws/network-node-layer-2", "cloud.google.com/gce-topology-block",
			"oci.oraclecloud.com/rdma.network_block_id",
		}},
		{Name: "core", NetworkDistance: NetworkDistance{Microseconds: 70}, Labels: []string{
			"fabric.topograph.run/tier-2", "network.topology.nvidia.com/core", "network.topology.nvidia.com/datacenter",
			"topology.k8s.aws/network-node-layer-1", "oci.oraclecloud.com/rdma.hpc_island_id",
		}},
		{Name: "zone", NetworkDistance: NetworkDistance{Microseconds: 150}, Labels: []string{"topology.kubernetes.io/zone"}},
		{Name: "region", NetworkDistance: NetworkDistance{Microseconds: 2_200},
			Labels: []string{"topology.kubernetes.io/region"}},
	}
}

const (
	defaultSameNodeMicroseconds = 4
	defaultApartMicroseconds    = 32_000

	maxNetworkLevels = 8
	maxMicroseconds  = 60_000_000
	maxGiBPerHour    = 1_000_000
)

// SetDefaults fills the fields that were left out.
func (args *NetworkTopologyArgs) SetDefaults() {
	setDefault(&args.SameNodeMicroseconds, defaultSameNodeMicroseconds)
	if len(args.Levels) == 0 {
		args.Levels = DefaultNetworkLevels()
	}
	setDefault(&args.Apart, NetworkDistance{Microseconds: defaultApartMicroseconds})
	setDefault(&args.GangGiBPerHour, 1000)
	setDefault(&args.AppLabel, "")
	setDefault(&args.AppGiBPerHour, 10)
}

// Validate checks defaulted args that stand at path in the configuration.
func (args *NetworkTopologyArgs) Validate(path *field.Path) error {
	errs := validateRange(path.Child("sameNodeMicroseconds"), args.SameNodeMicroseconds, 0, maxMicroseconds)
	if n := len(args.Levels); n > maxNetworkLevels {
		errs = append(errs, field.TooMany(path.Child("levels"), n, maxNetworkLevels))
	}
	within := NetworkDistance{Microseconds: *args.SameNodeMicroseconds}
	names, keys := map[string]bool{}, map[string]bool{}
	for i := range args.Levels {
		level, at := &args.Levels[i], path.Child("levels").Index(i)
		if len(validation.IsDNS1123Label(level.Name)) > 0 {
			errs = append(errs, field.Invalid(at.Child("name"), level.Name, "want lower-case letters, digits and hyphens"))
		} else if names[level.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), level.Name))
		}
		names[level.Name] = true
		if len(level.Labels) == 0 {
			errs = append(errs, field.Required(at.Child("labels"), "want keys of node labels"))
		}
		for j, key := range level.Labels {
			if len(validation.IsQualifiedName(key)) > 0 {
				errs = append(errs, field.Invalid(at.Child("labels").Index(j), key, "want the key of a node label"))
			} else if keys[key] {
				errs = append(errs, field.Duplicate(at.Child("labels").Index(j), key))
			}
			keys[key] = true
		}
		errs = append(errs, validateDistance(at, level.NetworkDistance, within)...)
		within = level.NetworkDistance
	}
	errs = append(errs, validateDistance(path.Child("apart"), *args.Apart, within)...)
	errs = append(errs, validateRange(path.Child("gangGiBPerHour"), args.GangGiBPerHour, 0, maxGiBPerHour)...)
	errs = append(errs, validateRange(path.Child("appGiBPerHour"), args.AppGiBPerHour, 1, maxGiBPerHour)...)
	if key := *args.AppLabel; key != "" && len(validation.IsQualifiedName(key)) > 0 {
		errs = append(errs, field.Invalid(path.Child("appLabel"), key, "want the key of a pod label"))
	}
	return errs.ToAggregate()
}

// validateDistance returns errors for a distance that is smaller than that of the next narrower level.
func validateDistance(path *field.Path, d, within NetworkDistance) field.ErrorList {
	path = path.Child("microseconds")
	errs := validateRange(path, &d.Microseconds, 0, maxMicroseconds)
	if d.Microseconds < within.Microseconds {
		errs = append(errs, field.Invalid(path, d.Microseconds,
			fmt.Sprintf("want at least the %d of the next narrower level", within.Microseconds)))
	}
	return errs
}
