package dryrun

import (
	"cmp"
	"slices"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/ranks"
)

// byRank returns the members of a gang that grows by steps in the order of their ranks, those without one last. Of
// members that are alike those at the end have to wait: the first ranks are the ones that others look for.
func (p *Planner) byRank(members []gang.Member) []gang.Member {
	var ranked, others []gang.Member
	var indices []ranks.Index
	for _, m := range members {
		index, numbered := ranks.Index{}, false
		if pod := p.Pod(m.Ref); pod != nil {
			index, numbered = gangview.IndexOf(pod)
		}
		if !numbered {
			others = append(others, m)
			continue
		}
		ranked, indices = append(ranked, m), append(indices, index)
	}
	at := make(map[gang.UID]int, len(ranked))
	for i, rank := range ranks.Number(indices) {
		at[ranked[i].UID] = rank
	}
	slices.SortStableFunc(ranked, func(a, b gang.Member) int { return cmp.Compare(at[a.UID], at[b.UID]) })
	return append(ranked, others...)
}

// endOnStep leaves out what the plan has beyond the last step that it reaches: the members that were placed last.
func (a *Plan) endOnStep(turn gang.Turn) {
	if !turn.Steps.Climbs() || !a.Feasible() {
		return
	}
	roleOf := make(map[gang.UID]string, len(turn.Members))
	for i := range turn.Members {
		roleOf[turn.Members[i].UID] = turn.Members[i].Role
	}
	roles := make([]string, len(a.Assignments))
	for i, placed := range a.Assignments {
		roles[i] = roleOf[placed.UID]
	}
	for _, i := range turn.Steps.Beyond(turn.Held, turn.HeldIn, roles) {
		a.Assignments = slices.Delete(a.Assignments, i, i+1) // the last comes first
	}
}
