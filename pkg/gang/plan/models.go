package plan

import (
	"cmp"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
)

// Members of one gang work in step, so that the slowest GPU sets the pace of all. So each gang with GPUs prefers nodes
// with the same product label, before the levels that it prefers itself. That costs no GPU: a plan that keeps to one
// product is taken only if it has as many members as one that does not.

// mostModels bounds the models on which a gang is tried, at the cost of a dry run each.
const mostModels = 6

// modelOf is the model of a node's GPUs by the labels that the profiles read, empty without one.
func (s *Sources) modelOf(node *v1.Node) string {
	for _, keys := range s.GPUs.All() {
		for _, label := range keys.ProductLabels {
			if model := node.Labels[label]; model != "" {
				return model
			}
		}
	}
	return ""
}

// mayUseGPU is false only for pods that certainly use no GPU.
func (s *Sources) mayUseGPU(pod *v1.Pod) bool {
	for _, keys := range s.GPUs.All() {
		if keys.MayUseGPU(pod) {
			return true
		}
	}
	return false
}

// onOneModel returns a plan with at least as many members as mixed on nodes of one model and nodes without GPUs; mixed
// itself if it uses one model, or if there is no such plan.
func (p *Planner) onOneModel(w *Work, id gang.ID, levels read.Topology, demand gang.Demand, nodes []fwk.NodeInfo,
	mixed *Plan) (*Plan, error) {
	for _, model := range p.models(id, demand, mixed, nodes) {
		alike := slices.DeleteFunc(slices.Clone(nodes), func(n fwk.NodeInfo) bool {
			of := p.modelOf(n.Node())
			return of != "" && of != model
		})
		a, err := p.arrangeOn(w, id, levels, demand, alike)
		if err != nil {
			return nil, err
		}
		if a.Feasible() && len(a.Assignments) >= len(mixed.Assignments) {
			return a, nil
		}
	}
	return mixed, nil
}

// models returns the models on which all members with GPUs may fit by the account of the cluster: those that members
// are on already first, then as the profile scores their best nodes. There are none if the plan mixes none.
func (p *Planner) models(id gang.ID, demand gang.Demand, plan *Plan, nodes []fwk.NodeInfo) []string {
	count, pods := map[string]int{}, map[string]*v1.Pod{}
	classOf := make(map[gang.UID]string, len(demand.Members))
	for i := range demand.Members {
		m := &demand.Members[i]
		classOf[m.UID] = m.Class
		if count[m.Class]++; count[m.Class] > 1 {
			continue
		}
		if pod := p.Members.Pod(m.Ref); pod != nil && p.mayUseGPU(pod) {
			pods[m.Class] = pod
		}
	}
	held := p.heldModels(id, plan.lister)
	used := maps.Clone(held)
	for _, placed := range plan.Assignments {
		if node, err := plan.lister.Get(placed.Node); err == nil && pods[classOf[placed.UID]] != nil {
			used[p.modelOf(node.Node())]++
		}
	}
	if delete(used, ""); len(used) < 2 {
		return nil
	}
	score := map[string]int64{}
	for class := range pods {
		for _, c := range plan.Classes[class].scored {
			model := p.modelOf(plan.Nodes[c.node].Node())
			score[model] = max(score[model], c.scores.TotalScore)
		}
	}
	delete(score, "")
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Node().Name
	}
	for class, pod := range pods {
		slots := map[string]int{}
		for i, n := range p.slotsOn(pod, names) {
			slots[p.modelOf(nodes[i].Node())] += n
		}
		maps.DeleteFunc(score, func(model string, _ int64) bool { return slots[model] < count[class] })
	}
	models := slices.SortedFunc(maps.Keys(score), func(a, b string) int {
		return cmp.Or(cmp.Compare(held[b], held[a]), cmp.Compare(score[b], score[a]), cmp.Compare(a, b))
	})
	return models[:min(len(models), mostModels)]
}

// heldModels counts the members with a node by the model of its GPUs.
func (s *Sources) heldModels(id gang.ID, nodes fwk.NodeInfoLister) map[string]int {
	held := map[string]int{}
	for ref, name := range s.Ledger.Where(id) {
		node, err := nodes.Get(name)
		if pod := s.Members.Pod(ref); err != nil || pod == nil || !s.mayUseGPU(pod) {
			continue
		}
		if model := s.modelOf(node.Node()); model != "" {
			held[model]++
		}
	}
	return held
}
