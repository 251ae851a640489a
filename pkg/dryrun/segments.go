package dryrun

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/ranks"
)

// mostLessons is how often segments get other domains because members did not fit where they should by the account.
const mostLessons = 8

// homes are the domains in which members of a gang with segments are placed.
type homes struct {
	// of holds the domain of each member, at that of each node of the part.
	of map[gang.UID]int
	at []int
}

// home returns the domain of a member, and its zero value without segments.
func (h *homes) home(uid gang.UID) int {
	if h == nil {
		return 0
	}
	return h.of[uid]
}

func (h *homes) allow(home, node int) bool { return h == nil || h.at[node] == home }

// segments are runs of ranks of members that are to be placed.
type segments struct {
	levels gangview.Topology
	// members are those of each segment, in the order of the segments.
	members [][]gang.Member
	// held is the domain in which other members of the segment are, empty if there are none, placed how many there are.
	held   []string
	placed []int
}

// domainOf returns the domain of the node by the levels that are required and that of segments; empty if it is in none.
func domainOf(levels gangview.Topology, node *v1.Node) string {
	keys := slices.Concat(levels.Required, []string{levels.Segment.Level})
	values := make([]string, len(keys))
	for i, key := range keys {
		if values[i] = node.Labels[key]; values[i] == "" {
			return ""
		}
	}
	return strings.Join(values, "\x00")
}

// segmentsOf divides members of the gang into segments. It is an error if one of them has no rank.
func (p *Planner) segmentsOf(id gang.ID, levels gangview.Topology, members []gang.Member,
	nodes []fwk.NodeInfo) (*segments, error) {
	rankOf := map[gang.UID]int{}
	var uids []gang.UID
	var indices []ranks.Index
	add := func(ref gang.Ref) *v1.Pod {
		pod := p.Pod(ref)
		if _, known := rankOf[ref.UID]; !known && pod != nil {
			if index, numbered := gangview.IndexOf(pod); numbered {
				rankOf[ref.UID] = 0
				uids, indices = append(uids, ref.UID), append(indices, index)
			}
		}
		return pod
	}
	for i := range members {
		ref := members[i].Ref
		pod := add(ref)
		if _, ranked := rankOf[ref.UID]; !ranked && pod != nil {
			return nil, levels.Segment.Unranked(pod)
		}
	}
	for _, ref := range p.Ledger.Members(id) {
		add(ref)
	}
	for i, rank := range ranks.Number(indices) {
		rankOf[uids[i]] = rank / levels.Segment.Size
	}
	byNumber := map[int][]gang.Member{}
	for i := range members {
		number := rankOf[members[i].UID]
		byNumber[number] = append(byNumber[number], members[i])
	}
	domains := make(map[string]string, len(nodes))
	for _, n := range nodes {
		domains[n.Node().Name] = domainOf(levels, n.Node())
	}
	held := map[int]map[string]int{}
	for ref, node := range p.Ledger.Where(id) {
		if number, ranked := rankOf[ref.UID]; ranked && domains[node] != "" {
			if held[number] == nil {
				held[number] = map[string]int{}
			}
			held[number][domains[node]]++
		}
	}
	s := &segments{levels: levels}
	for _, number := range slices.Sorted(maps.Keys(byNumber)) {
		most, placed := "", 0
		for _, domain := range slices.Sorted(maps.Keys(held[number])) {
			placed += held[number][domain]
			if most == "" || held[number][domain] > held[number][most] {
				most = domain
			}
		}
		s.members, s.held = append(s.members, byNumber[number]), append(s.held, most)
		s.placed = append(s.placed, placed)
	}
	return s, nil
}

// arrangeSegments places a gang with segments: each segment gets a domain by the account of what is free, as few of the
// wider domains as possible, and its members are placed there. Where they do not fit, the segments are given domains
// again.
func (p *Planner) arrangeSegments(w *Work, id gang.ID, levels gangview.Topology, turn gang.Turn, nodes []fwk.NodeInfo,
	only *modelLimits) (*Plan, error) {
	s, err := p.segmentsOf(id, levels, turn.Members, nodes)
	if err != nil {
		return nil, err
	}
	c := p.newSegmentChoice(s, turn, nodes, only)
	c.paths(p.paths(levels, turn, nodes), p.Ledger.Nodes(id))
	var tried attempts
	for range mostLessons {
		part, members := c.part()
		limited := turn
		limited.Members = members
		a, err := p.tryPlaces(w, id, limited, part)
		if err != nil {
			return nil, err
		}
		tried.add(a)
		if a.Feasible() || w.spent() || !c.learn(a, members) {
			break
		}
	}
	tried.best.Segments = fmt.Sprintf("segments of %d ranks, each within one %s",
		levels.Segment.Size, levels.Segment.Level)
	p.finish(tried.best, levels, turn)
	return tried.best, nil
}

// JoinSegment returns on which nodes a member that comes later shares the domain of its segment, with why; without
// segments it returns all. If no other member of the segment has a node, each domain counts that has room for as many
// members like this one as the segment lacks.
func (p *Planner) JoinSegment(id gang.ID, levels gangview.Topology, pod *v1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodeInfo,
	string, error) {
	if levels.Segment.Size == 0 {
		return nodes, "", nil
	}
	members := []gang.Member{memberOf(pod)}
	held := p.Ledger.Where(id)
	for _, ref := range p.Ledger.Members(id) {
		other := p.Pod(ref)
		if other == nil || held[ref] != "" || ref.UID == members[0].UID {
			continue
		}
		if _, ranked := gangview.IndexOf(other); ranked {
			members = append(members, memberOf(other))
		}
	}
	s, err := p.segmentsOf(id, levels, members, nodes)
	if err != nil {
		return nil, "", err
	}
	own := slices.IndexFunc(s.members, func(of []gang.Member) bool { return of[0].UID == members[0].UID })
	domain, missing := s.held[own], len(s.members[own])
	slots := map[string]int{}
	if domain == "" {
		key := p.Capacity.Acquire(pod)
		p.Capacity.Each(key, func(node *v1.Node, now, _ int) { slots[domainOf(levels, node)] += now })
		p.Capacity.Release(key)
	}
	why := fmt.Sprintf("the segment of the pod needs a %s with room for %d members", levels.Segment.Level, missing)
	if domain != "" {
		values := strings.Split(domain, "\x00")
		why = fmt.Sprintf("the other members of its segment are on nodes with %s=%s, and this one has to be there, too",
			levels.Segment.Level, values[len(values)-1])
	}
	var within []fwk.NodeInfo
	for _, n := range nodes {
		if at := domainOf(levels, n.Node()); at != "" && (at == domain || domain == "" && slots[at] >= missing) {
			within = append(within, n)
		}
	}
	return within, why, nil
}

// OneSegment returns the nodes of the other members of the segment, if all members of the turn are in one.
func (p *Planner) OneSegment(id gang.ID, levels gangview.Topology, turn gang.Turn,
	nodes []fwk.NodeInfo) (map[string]int, bool) {
	s, err := p.segmentsOf(id, levels, turn.Members, nodes)
	if err != nil || len(s.members) != 1 {
		return nil, false
	}
	held := map[string]int{}
	if s.held[0] == "" {
		return held, true
	}
	for _, n := range nodes {
		if domainOf(levels, n.Node()) == s.held[0] {
			held[n.Node().Name] = 1
		}
	}
	return held, true
}
