package priceview

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CapacityType is how a node was bought, and so whether it may be taken away.
type CapacityType string

// Capacity types. A node that no rule knows is on demand: nothing says that it may be taken away.
const (
	OnDemand CapacityType = "on-demand"
	Reserved CapacityType = "reserved"
	Spot     CapacityType = "spot"
)

// CapacityRule gives a capacity type to the nodes with a label that has one of these values, or in whose value one of
// the parts occurs in any letter case; with neither the label's presence is enough.
type CapacityRule struct {
	Label    string
	Values   []string
	Contains []string
	Type     CapacityType
}

func (r CapacityRule) matches(value string) bool {
	if len(r.Values) == 0 && len(r.Contains) == 0 {
		return true
	}
	return slices.Contains(r.Values, value) || slices.ContainsFunc(r.Contains, func(part string) bool {
		return strings.Contains(strings.ToLower(value), strings.ToLower(part))
	})
}

// CapacityRules are tried in order; the first that matches decides.
type CapacityRules []CapacityRule

// DefaultCapacityRules know the labels of Karpenter and EKS Auto, EKS managed nodes, self-managed AWS, GKE, AKS, OKE,
// ACK, Spot Ocean, Cluster API and OpenShift.
func DefaultCapacityRules() CapacityRules {
	return CapacityRules{
		{Label: "karpenter.sh/capacity-type", Values: []string{"spot"}, Type: Spot},
		{Label: "karpenter.sh/capacity-type", Values: []string{"reserved"}, Type: Reserved},
		{Label: "karpenter.sh/capacity-type", Values: []string{"on-demand"}, Type: OnDemand},
		{Label: "eks.amazonaws.com/capacityType", Values: []string{"SPOT"}, Type: Spot},
		{Label: "eks.amazonaws.com/capacityType", Values: []string{"CAPACITY_BLOCK"}, Type: Reserved},
		{Label: "eks.amazonaws.com/capacityType", Values: []string{"ON_DEMAND"}, Type: OnDemand},
		{Label: "node.kubernetes.io/lifecycle", Values: []string{"spot"}, Type: Spot},
		{Label: "cloud.google.com/gke-spot", Values: []string{"true"}, Type: Spot},
		{Label: "cloud.google.com/gke-preemptible", Values: []string{"true"}, Type: Spot},
		{Label: "cloud.google.com/gke-provisioning", Values: []string{"spot", "preemptible"}, Type: Spot},
		{Label: "cloud.google.com/gke-provisioning", Values: []string{"standard"}, Type: OnDemand},
		{Label: "kubernetes.azure.com/scalesetpriority", Values: []string{"spot"}, Type: Spot},
		{Label: "kubernetes.azure.com/scalesetpriority", Values: []string{"regular"}, Type: OnDemand},
		{Label: "oci.oraclecloud.com/oke-is-preemptible", Values: []string{"true"}, Type: Spot},
		{Label: "node.alibabacloud.com/spot-strategy", Values: []string{"SpotWithPriceLimit", "SpotAsPriceGo"}, Type: Spot},
		{Label: "node.alibabacloud.com/spot-strategy", Values: []string{"NoSpot"}, Type: OnDemand},
		{Label: "spotinst.io/node-lifecycle", Values: []string{"spot"}, Type: Spot},
		{Label: "spotinst.io/node-lifecycle", Values: []string{"od"}, Type: OnDemand},
		{Label: "cluster.x-k8s.io/interruptible", Type: Spot},
		{Label: "machine.openshift.io/interruptible-instance", Type: Spot},
	}
}

// TypeOf returns the capacity type of a node.
func (rules CapacityRules) TypeOf(node *v1.Node) CapacityType {
	for _, r := range rules {
		if value, ok := node.Labels[r.Label]; ok && r.matches(value) {
			return r.Type
		}
	}
	return OnDemand
}

// SetSpot makes the node one that may be taken away, by the first rule that says so.
func (rules CapacityRules) SetSpot(node *v1.Node) {
	for _, r := range rules {
		if r.Type == Spot {
			value := append(slices.Concat(r.Values, r.Contains), "true")[0]
			metav1.SetMetaDataLabel(&node.ObjectMeta, r.Label, value)
			return
		}
	}
}
