package dryrun

import (
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// meanNode is what the nodes of a dry run have together, and how many they are.
type meanNode struct {
	nodes       int
	cpu, memory int64
	scalar      map[v1.ResourceName]int64
}

func newMeanNode(nodes []fwk.NodeInfo) *meanNode {
	m := &meanNode{nodes: len(nodes), scalar: map[v1.ResourceName]int64{}}
	for _, n := range nodes {
		a := n.GetAllocatable()
		m.cpu += a.GetMilliCPU()
		m.memory += a.GetMemory()
		for name, q := range a.GetScalarResources() {
			m.scalar[name] += q
		}
	}
	return m
}

// part is how large a part of the mean node one pod asks for, in the resource where that is most.
func (m *meanNode) part(want fwk.Resource) float64 {
	of := func(want, total int64) float64 { return float64(want) * float64(m.nodes) / float64(max(total, 1)) }
	most := max(of(want.GetMilliCPU(), m.cpu), of(want.GetMemory(), m.memory))
	for name, q := range want.GetScalarResources() {
		most = max(most, of(q, m.scalar[name]))
	}
	return most
}

// hardness is how large a part of the mean node one member of the class asks for, in the resource where that is most.
func (d *Run) hardness(class string) float64 {
	if len(d.Classes) < 2 {
		return 0
	}
	if d.mean == nil {
		d.mean = newMeanNode(d.Nodes)
	}
	r := d.Classes[class]
	if r.hardness == nil {
		part := d.mean.part(r.info.CalculateResource().Resource)
		r.hardness = &part
	}
	return *r.hardness
}
