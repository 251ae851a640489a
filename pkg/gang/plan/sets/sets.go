package sets

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/ranks"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/read/numbering"
	"berth.dev/berth/pkg/gang/tree"
)

// part is a set of members that shares a domain: a gang, a group within it, or a segment of its ranks.
type part struct {
	// keys are the node labels whose values all members share, including those of the sets around; own is set if the set
	// adds some. prefer are longer lists of keys that are tried first, the narrowest first.
	keys   []string
	own    bool
	prefer [][]string
	// lacks is the group with what has to be placed for it to be whole; nil for a segment, all of whose members have to.
	lacks   *tree.Group
	members []gang.Member
	// held is the domain in which most of the members that have a place are, placed is how many members have one.
	held   string
	placed int
	around int
	// sets are those within. enough is how many members make up for sets that are not whole.
	sets   []int
	enough int
}

// least is how many of the sets within have to be whole.
func (s *part) least() int {
	if s.lacks == nil {
		return 0
	}
	return s.lacks.Least
}

// alone reports whether no other such set may have its domain.
func (s *part) alone() bool { return s.lacks != nil && s.lacks.Alone }

// Division is the sets of a gang, the whole gang first.
type Division struct {
	all []part
	// of holds the set of each member.
	of map[gang.UID]int
	// Size is how many ranks a segment has, 0 if the sets are groups.
	Size int
}

// Divider divides gangs into sets.
type Divider struct {
	Ledger   *gang.Ledger
	Members  *members.Directory
	Capacity *capacity.Index
}

// DomainOf returns the domain of the node by the labels; empty if it lacks one.
func DomainOf(keys []string, node *v1.Node) string {
	values := make([]string, len(keys))
	for i, key := range keys {
		if values[i] = node.Labels[key]; values[i] == "" {
			return ""
		}
	}
	return strings.Join(values, "\x00")
}

// Any reports whether the gang is divided into groups or segments.
func (d *Divider) Any(id gang.ID, levels read.Topology) bool {
	v, _ := d.Ledger.View(id)
	return levels.Segment.Size > 0 || v.Minimum.Tree != nil
}

// Divide divides the members that are still to be placed into sets, with what is still needed. It fails if a member has
// no rank although the gang is divided into segments.
func (d *Divider) Divide(id gang.ID, levels read.Topology, need gang.Minimum,
	members []gang.Member) (*Division, error) {
	s := &Division{of: map[gang.UID]int{}, Size: levels.Segment.Size}
	s.add(part{keys: levels.Required, own: len(levels.Required) > 0, prefer: narrowing(levels.Required, levels.Preferred),
		lacks: need.Groups(), around: tree.None, enough: tree.None})
	if s.Size == 0 {
		d.divideByGroup(s, id, need, members)
	} else if err := d.divideByRank(s, id, levels, members); err != nil {
		return nil, err
	}
	for i := range members {
		if at, known := s.of[members[i].UID]; known {
			s.all[at].members = append(s.all[at].members, members[i])
		}
	}
	s.findHeld(d.Ledger.Where(id), d.Capacity.Cluster.Node)
	if s.Size > 0 {
		s.leastSegments(need.Total)
	}
	return s, nil
}

// narrowing lists the levels within those that are required, the narrowest first.
func narrowing(required, preferred []string) [][]string {
	var out [][]string
	for i := range preferred {
		out = append(out, slices.Concat(required, preferred[:len(preferred)-i]))
	}
	return out
}

// add adds a set within the one around it.
func (s *Division) add(set part) int {
	s.all = append(s.all, set)
	at := len(s.all) - 1
	if set.around != tree.None {
		around := &s.all[set.around]
		around.sets = append(around.sets, at)
	}
	return at
}

// divideByRank makes a set of each segment that has members to be placed.
func (d *Divider) divideByRank(s *Division, id gang.ID, levels read.Topology, members []gang.Member) error {
	var uids []gang.UID
	var indices []ranks.Index
	known := map[gang.UID]bool{}
	for i, ref := range slices.Concat(refsOf(members), d.Ledger.Members(id)) {
		pod := d.Members.Pod(ref)
		if pod == nil || known[ref.UID] {
			continue
		}
		index, numbered := numbering.IndexOf(pod)
		switch {
		case numbered:
			known[ref.UID] = true
			uids, indices = append(uids, ref.UID), append(indices, index)
		case i < len(members):
			return levels.Segment.Unranked(pod)
		}
	}
	s.all[0].lacks = &tree.Group{}
	number, sets := map[gang.UID]int{}, map[int]int{}
	for i, rank := range ranks.Number(indices) {
		number[uids[i]] = rank / s.Size
	}
	for _, n := range slices.Sorted(maps.Values(number)) {
		if _, made := sets[n]; !made {
			sets[n] = s.add(part{keys: slices.Concat(levels.Required, []string{levels.Segment.Level}), own: true,
				enough: tree.None})
		}
	}
	for uid, n := range number {
		s.of[uid] = sets[n]
	}
	return nil
}

func refsOf(members []gang.Member) []gang.Ref {
	refs := make([]gang.Ref, len(members))
	for i := range members {
		refs[i] = members[i].Ref
	}
	return refs
}

// leastSegments finds how many segments have to be whole, the largest first, to place the needed members.
func (s *Division) leastSegments(need int) {
	root := &s.all[0]
	root.enough = need
	root.sets = slices.DeleteFunc(root.sets, func(set int) bool { return len(s.all[set].members) == 0 })
	sizes := make([]int, len(root.sets))
	for i, set := range root.sets {
		sizes[i] = len(s.all[set].members)
	}
	slices.SortFunc(sizes, func(a, b int) int { return cmp.Compare(b, a) })
	for ; need > 0 && root.lacks.Least < len(sizes); root.lacks.Least++ {
		need -= sizes[root.lacks.Least]
	}
}

// divideByGroup makes a set of each group.
func (d *Divider) divideByGroup(s *Division, id gang.ID, need gang.Minimum, members []gang.Member) {
	byName := map[string]int{}
	var within func(g *tree.Group, at int)
	within = func(g *tree.Group, at int) {
		for i := range g.Groups {
			of := &g.Groups[i]
			keys := slices.Concat(s.all[at].keys, of.Required)
			set := s.add(part{keys: keys, own: len(of.Required) > 0, prefer: narrowing(keys, of.Preferred), lacks: of,
				around: at, enough: tree.None})
			if !of.Copies {
				byName[of.Name] = set
			}
			within(of, set)
		}
	}
	within(need.Groups(), 0)
	pg := d.Members.Group(id)
	for _, ref := range slices.Concat(refsOf(members), d.Ledger.Members(id)) {
		pod := d.Members.Pod(ref)
		if pod == nil {
			continue
		}
		// Members of groups that the gang does not have are left out, so that the others need not wait.
		name := read.GroupOf(pod, pg)
		if set, known := byName[name]; known || name == "" {
			s.of[ref.UID] = set
		}
	}
}

// findHeld finds the domain in which most members of each set are.
func (s *Division) findHeld(where map[gang.Ref]string, nodeOf func(name string) *v1.Node) {
	held := make([]map[string]int, len(s.all))
	for ref, name := range where {
		at, known := s.of[ref.UID]
		for ; known && at != tree.None; at = s.all[at].around {
			s.all[at].placed++
			node := nodeOf(name)
			if node == nil || len(s.all[at].keys) == 0 {
				continue
			}
			if held[at] == nil {
				held[at] = map[string]int{}
			}
			held[at][DomainOf(s.all[at].keys, node)]++
		}
	}
	for at, of := range held {
		delete(of, "")
		for domain, n := range of {
			if most := s.all[at].held; n > of[most] || n == of[most] && domain < most {
				s.all[at].held = domain
			}
		}
	}
}

// Lacking returns a message about the first needed group that is not placed, the labels whose values that group or
// segment shares, and one of its members.
func (s *Division) Lacking(placed []bool) (says string, keys []string, member gang.Member) {
	var find func(at int) *part
	find = func(at int) *part {
		set := &s.all[at]
		if !placed[at] && len(set.sets) == 0 {
			return set
		}
		whole := 0
		var lacking *part
		for _, within := range set.sets {
			if of := find(within); of == nil {
				whole++
			} else if lacking == nil {
				lacking = of
			}
		}
		if whole >= set.least() {
			return nil
		}
		return lacking
	}
	set := find(0)
	if set == nil {
		return "", nil, gang.Member{}
	}
	if len(set.members) > 0 {
		member = set.members[0]
	}
	if s.Size > 0 {
		return "", set.keys, member
	}
	says = "there is no room for group " + set.lacks.Name
	if set.own {
		says += " within one " + set.keys[len(set.keys)-1]
	}
	return says, set.keys, member
}
