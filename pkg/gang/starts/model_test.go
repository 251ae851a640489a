package starts

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang"
)

// reserveModel keeps room as Choose does, but looks at one place after the other.
type reserveModel struct {
	*Problem
	units  [][]reserveUnit
	nodes  map[int]float64
	counts map[[2]int]int
	taken  []int
	order  []int
	pods   int
}

// reserveUnit is room for one member on a node.
type reserveUnit struct{ node, pods int }

func (p *Problem) modelled() (Choice, bool) {
	var domains []int
	for i := range p.Nodes {
		if d := p.Nodes[i].Domain; d >= 0 {
			domains = append(domains, d)
		}
	}
	slices.Sort(domains)
	var best *reserveModel
	bestKept := false
	for _, d := range slices.Compact(domains) {
		kept := false
		for i := range p.Nodes {
			kept = kept || p.Nodes[i].Domain == d && p.Nodes[i].Kept
		}
		if best != nil && bestKept && !kept {
			continue
		}
		for _, hardestFirst := range []bool{true, false} {
			r := &reserveModel{Problem: p, nodes: map[int]float64{}, counts: map[[2]int]int{},
				taken: make([]int, len(p.Classes))}
			r.sort(d, hardestFirst)
			if r.minimum(d) && (best == nil || (kept && !bestKept) || r.pods < best.pods) {
				best, bestKept = r, kept
			}
		}
	}
	if best == nil {
		return Choice{}, false
	}
	best.spare()
	return best.result(), true
}

// sort decides on the order of the classes.
func (r *reserveModel) sort(domain int, hardestFirst bool) {
	room := func(c int) int {
		sum := 0
		for i := range r.Nodes {
			if r.Nodes[i].Domain == domain {
				sum += r.Nodes[i].Rooms[r.Classes[c].Shape].Empty
			}
		}
		return sum
	}
	for c := range r.Classes {
		r.order = append(r.order, c)
	}
	slices.SortStableFunc(r.order, func(a, b int) int {
		if hardestFirst {
			return cmp.Or(cmp.Compare(room(a), room(b)), cmp.Compare(a, b))
		}
		return cmp.Or(cmp.Compare(room(b), room(a)), cmp.Compare(a, b))
	})
}

func (r *reserveModel) minimum(domain int) bool {
	for s := range r.Nodes[0].Rooms {
		r.units = append(r.units, r.unitsOf(s, domain))
	}
	total, left := r.Need.Total, make([]int, len(r.Classes))
	roles := map[string]int{}
	for role, n := range r.Need.Roles {
		roles[role] = n
	}
	for _, c := range r.order {
		class := r.Classes[c]
		got := r.take(c, min(class.Count, roles[class.Role]), false)
		roles[class.Role] -= got
		total -= got
		left[c] = class.Count - got
	}
	for _, n := range roles {
		if n > 0 {
			return false
		}
	}
	for _, c := range r.order {
		total -= r.take(c, min(left[c], total), false)
	}
	return total <= 0
}

func (r *reserveModel) spare() {
	if r.pods == 0 {
		return
	}
	for _, c := range r.order {
		n := r.taken[c]
		r.take(c, int(math.Ceil(spareShare*float64(n))), true)
	}
}

func (r *reserveModel) unitsOf(shape, domain int) []reserveUnit {
	var units []reserveUnit
	for n := range r.Nodes {
		if r.Nodes[n].Domain != domain {
			continue
		}
		room := r.Nodes[n].Rooms[shape]
		for i := range room.Empty {
			pods := 0
			if i >= room.Now {
				pods = max(room.Pods, 1)
			}
			units = append(units, reserveUnit{n, pods})
		}
	}
	slices.SortFunc(units, func(a, b reserveUnit) int {
		x, y := &r.Nodes[a.node], &r.Nodes[b.node]
		if x.Kept != y.Kept && a.pods == b.pods {
			if x.Kept {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.pods, b.pods), cmp.Compare(y.Rooms[shape].Free, x.Rooms[shape].Free),
			cmp.Compare(x.Name, y.Name))
	})
	return units
}

func (r *reserveModel) take(class, n int, spare bool) int {
	shape, taken := r.Classes[class].Shape, 0
	for len(r.units[shape]) > 0 && taken < n {
		u := r.units[shape][0]
		r.units[shape] = r.units[shape][1:]
		used, known := r.nodes[u.node]
		used += 1 / float64(r.Nodes[u.node].Rooms[shape].Empty)
		if used > 1.0001 || (!known && len(r.nodes) >= r.MaxNodes) {
			continue
		}
		r.nodes[u.node] = used
		r.counts[[2]int{u.node, class}]++
		taken++
		if !spare {
			r.taken[class]++
			r.pods += u.pods
		}
	}
	return taken
}

func (r *reserveModel) result() Choice {
	out := Choice{Pods: r.pods, Ready: r.pods == 0}
	for n := range r.Nodes {
		for c := range r.Classes {
			if count := r.counts[[2]int{n, c}]; count > 0 {
				out.Places = append(out.Places, Place{Node: r.Nodes[n].Name, Class: c, Count: count})
			}
		}
	}
	return out
}

// TestReserveKeepsWhatTheModelKeeps draws problems with several classes, shapes, roles and domains.
func TestReserveKeepsWhatTheModelKeeps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		roles := []string{"", "leader", "worker"}
		p := Problem{Need: gang.Minimum{Total: rapid.IntRange(0, 12).Draw(t, "need")},
			MaxNodes: rapid.IntRange(0, 8).Draw(t, "max")}
		if rapid.Bool().Draw(t, "with roles") {
			p.Need.Roles = map[string]int{"leader": rapid.IntRange(0, 2).Draw(t, "leaders"),
				"worker": rapid.IntRange(0, 4).Draw(t, "workers")}
		}
		shapes := rapid.IntRange(1, 4).Draw(t, "shapes")
		for range rapid.IntRange(1, 6).Draw(t, "classes") {
			p.Classes = append(p.Classes, Class{Role: rapid.SampledFrom(roles).Draw(t, "role"),
				Count: rapid.IntRange(0, 5).Draw(t, "count"), Shape: rapid.IntRange(0, shapes-1).Draw(t, "shape")})
		}
		for i := range rapid.IntRange(1, 10).Draw(t, "nodes") {
			n := Node{Name: fmt.Sprintf("n%d", i*7%10), Domain: rapid.IntRange(-1, 2).Draw(t, "domain"),
				Kept: rapid.Bool().Draw(t, "kept")}
			for range shapes {
				empty := rapid.IntRange(0, 7).Draw(t, "empty")
				n.Rooms = append(n.Rooms, Room{Now: rapid.IntRange(0, empty).Draw(t, "now"), Empty: empty,
					Pods: rapid.IntRange(0, 3).Draw(t, "pods"), Free: rapid.IntRange(0, 2).Draw(t, "free")})
			}
			p.Nodes = append(p.Nodes, n)
		}
		want, wanted := p.modelled()
		got, ok := Choose(&p)
		if ok != wanted {
			t.Fatalf("found is %v, the model says %v", ok, wanted)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("reservation (-model +got):\n%s", diff)
		}
	})
}
