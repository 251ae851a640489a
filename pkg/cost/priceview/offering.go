package priceview

import v1 "k8s.io/api/core/v1"

// Offering is what a provider sells a node as. Fields are empty where the node's labels do not tell.
type Offering struct {
	InstanceType, CapacityType, Zone string
}

// OfferingOf returns what a node was bought as. The capacity type is that of the rules, whose names are Karpenter's.
func (r CapacityRules) OfferingOf(node *v1.Node) Offering {
	return Offering{
		InstanceType: node.Labels[v1.LabelInstanceTypeStable],
		CapacityType: string(r.TypeOf(node)),
		Zone:         node.Labels[v1.LabelTopologyZone],
	}
}
