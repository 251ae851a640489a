package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gangplan"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/spelling"
)

// Need is how many pods of a shape a gang needs.
type Need struct {
	Shape ShapeKey
	Count int
}

// Slots returns how many pods of a shape fit at most: into what is free, and if no pod ran in the cluster.
func (x *Index) Slots(key ShapeKey) (now, empty int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	s := x.shapes.byKey[key]
	if s == nil {
		return manySlots, manySlots
	}
	return int(s.now), int(s.empty)
}

// Best returns how many of the needed pods fit at most within one domain: nodes that have the same value of each of the
// labels keys, and those of pinned where it is not empty. Without keys, the cluster is the domain. With empty set the
// answer is that for a cluster in which no pod runs. Each shape is counted on its own, as if the others were not there,
// and a shape that is not live fits everywhere.
func (x *Index) Best(needs []Need, keys, pinned []string, empty bool) int {
	return x.best(needs, keys, pinned, empty, nil)
}

// BestBeside is Best for what is free besides what is kept.
func (x *Index) BestBeside(needs []Need, keys, pinned []string, kept []*Kept) int {
	return x.best(needs, keys, pinned, false, kept)
}

func (x *Index) best(needs []Need, keys, pinned []string, empty bool, kept []*Kept) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	beside := x.beside(kept)
	if len(keys) == 0 {
		fits := int64(0)
		for _, need := range needs {
			total := int64(manySlots)
			if s := x.shapes.byKey[need.Shape]; s != nil && empty {
				total = s.empty
			} else if s != nil {
				total = s.now - beside.takenOf(s)
			}
			fits += min(int64(need.Count), total)
		}
		return int(fits)
	}
	p := x.partition(keys)
	fits := make([]int64, p.domains)
	sums := make([]int64, p.domains)
	for i, need := range needs {
		if i == 0 || need.Shape != needs[i-1].Shape {
			x.shapes.byKey[need.Shape].sums(x.nodes.slots, p, empty, sums)
			for k := range beside.nodes {
				if d := p.of[beside.nodes[k].slot]; d >= 0 {
					sums[d] -= beside.nodes[k].taken(x.shapes.byKey[need.Shape])
				}
			}
		}
		for d := range sums {
			fits[d] += min(int64(need.Count), sums[d])
		}
	}
	most := int64(0)
	for d, n := range fits {
		if n > most && p.matches(d, pinned) {
			most = n
		}
	}
	return int(most)
}

// sums counts the slots of a shape by domain; one that is not live fits everywhere.
func (s *shape) sums(nodes []*nodeEntry, p *partition, empty bool, sums []int64) {
	clear(sums)
	for i, d := range p.of {
		switch {
		case d < 0:
		case s == nil:
			sums[d] += manySlots
		case s.rule.verdicts[i] != admitted:
		case empty:
			sums[d] += slotsOnEmpty(s.bounds, nodes[i].has)
		default:
			sums[d] += slotsOn(s.bounds, nodes[i].has, nodes[i].used)
		}
	}
}

// partition says which node lies in which domain of some labels.
type partition struct {
	domains int
	// of holds the domain of each node by slot, -1 for nodes without one.
	of []int
	// values holds the values of the labels of each domain.
	values [][]string
}

func (p *partition) matches(domain int, pinned []string) bool {
	for i, value := range pinned {
		if value != "" && p.values[domain][i] != value {
			return false
		}
	}
	return true
}

// maxPartitions bounds how many partitions are remembered: users name the labels.
const maxPartitions = 64

func (x *book) partition(keys []string) *partition {
	var w shapeWriter
	for _, key := range keys {
		w.text(key)
	}
	if p := x.memo.domains[string(w.written)]; p != nil {
		return p
	}
	if len(x.memo.domains) >= maxPartitions {
		clear(x.memo.domains)
	}
	p := &partition{of: slices.Repeat([]int{-1}, len(x.nodes.slots))}
	x.memo.domains[string(w.written)] = p
	index := map[string]int{}
	for i, n := range x.nodes.existing() {
		var w shapeWriter
		values := make([]string, len(keys))
		for k, key := range keys {
			values[k] = n.node.Labels[key]
			w.text(values[k])
		}
		if slices.Contains(values, "") {
			continue
		}
		d, known := index[string(w.written)]
		if !known {
			d = p.domains
			index[string(w.written)] = d
			p.domains++
			p.values = append(p.values, values)
		}
		p.of[i] = d
	}
	return p
}

// Each calls visit with every node that pods of the shape may use, and with how many of them fit on it at most: into
// what is free, and if no pod ran there. visit must not call the index.
func (x *Index) Each(key ShapeKey, visit func(node *v1.Node, now, empty int)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	s := x.shapes.byKey[key]
	if s == nil {
		return
	}
	for i, n := range x.nodes.slots {
		if n != nil && s.rule.verdicts[i] == admitted {
			visit(n.node, int(slotsOn(s.bounds, n.has, n.used)), int(slotsOnEmpty(s.bounds, n.has)))
		}
	}
}

// SlotsOn returns how many pods of the shape fit on each of the nodes into what is free: 0 on a node that they may not
// use.
func (x *Index) SlotsOn(key ShapeKey, names []string) []int {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	slots := make([]int, len(names))
	s := x.shapes.byKey[key]
	if s == nil {
		return slots
	}
	for i, name := range names {
		if n := x.nodes.byName[name]; n != nil && s.rule.verdicts[n.slot] == admitted {
			slots[i] = int(slotsOn(s.bounds, n.has, n.used))
		}
	}
	return slots
}

// Causes returns what keeps pods of a shape that share the values of the labels keys off nodes, the cause of the most
// nodes first, and on how many nodes one fits now. Each node counts once: for what no pod of the shape can change, then
// for what it lacks without pods, then for what it is short of now or what is kept for others.
func (x *Index) Causes(key ShapeKey, keys []string, kept []*Kept) []gangplan.NodeCause {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	if x.nodes.present == 0 {
		return []gangplan.NodeCause{Cause("the cluster has no nodes", 0)}
	}
	s := x.shapes.byKey[key]
	if s == nil {
		return nil
	}
	beside := x.beside(kept)
	about := causesKey{s, strings.Join(keys, "\x00")}
	causes, known := beside.causes[about]
	if !known {
		causes = x.causes(s, keys, beside)
		beside.causes[about] = causes
	}
	return slices.Clone(causes)
}

func (x *Index) causes(s *shape, keys []string, beside *besides) []gangplan.NodeCause {
	if missing := x.missing(keys); len(missing) > 0 {
		return missing
	}
	p := x.partition(keys)
	var excluded [verdicts]int
	without, lacking, short := make([]int, len(s.bounds)), make([]int, len(s.bounds)), make([]int, len(s.bounds))
	most := make([]int64, len(s.bounds))
	unlabelled, fits := 0, make([]int, p.domains)
	for i, n := range x.nodes.slots {
		if excluded[s.rule.verdicts[i]]++; s.rule.verdicts[i] != admitted {
			continue
		}
		if p.of[i] < 0 {
			unlabelled++
		} else if k := shortOf(s.bounds, n.has, nil); k >= 0 {
			if has := n.has[s.bounds[k].Resource]; has == 0 {
				without[k]++
			} else {
				lacking[k]++
				most[k] = max(most[k], has)
			}
		} else if k := shortOf(s.bounds, n.has, n.used); k >= 0 {
			short[k]++
		} else {
			fits[p.of[i]]++
		}
	}
	causes := beside.keptOff(s, p, fits)
	for v, words := range stockWords {
		if excluded[v] > 0 {
			causes = append(causes, Cause(words, excluded[v]))
		}
	}
	if unlabelled > 0 {
		causes = append(causes, Unlabelled(keys, unlabelled))
	}
	for k := range s.bounds {
		name := x.resources.names[s.bounds[k].Resource]
		if name == v1.ResourcePods {
			if n := without[k] + lacking[k] + short[k]; n > 0 {
				causes = append(causes, Cause("Too many pods", n))
			}
			continue
		}
		if lacking[k] > 0 {
			causes = append(causes, Lacking(name, most[k], lacking[k]))
		}
		if without[k] > 0 {
			causes = append(causes, gangplan.NodeCause{Short: string(name), Most: "0", Nodes: without[k]})
		}
		if short[k] > 0 {
			causes = append(causes, gangplan.NodeCause{Short: string(name), Nodes: short[k]})
		}
	}
	causes = Fitting(causes, keys, fits)
	slices.SortFunc(causes, func(a, b gangplan.NodeCause) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Short, b.Short), cmp.Compare(a.Most, b.Most),
			cmp.Compare(a.Says, b.Says))
	})
	return causes
}

// shortOf returns the first bound that lets no pod onto a node, -1 if none does.
func shortOf(bounds []bound, has, used []int64) int {
	for k := range bounds {
		if slotsOn(bounds[k:k+1], has, used) == 0 {
			return k
		}
	}
	return -1
}

// Missing returns the cause that no node has the labels whose values pods are to share; nothing if one has.
func (x *Index) Missing(keys []string) []gangplan.NodeCause {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	return x.missing(keys)
}

func (x *book) missing(keys []string) []gangplan.NodeCause {
	if x.nodes.present == 0 || x.partition(keys).domains > 0 {
		return nil
	}
	labels := map[string]string{}
	for _, n := range x.nodes.existing() {
		maps.Copy(labels, n.node.Labels)
	}
	says := "no node has all labels of " + strings.Join(keys, ", ")
	for _, key := range keys {
		if _, some := labels[key]; !some {
			says = "no node has the label " + key
			if like := spelling.Closest(key, labels); like != "" {
				says += "; did you mean " + like + "?"
			}
			break
		}
	}
	return []gangplan.NodeCause{{Says: says, Kind: "no node has the label of a level"}}
}

// Unlabelled is the cause of nodes without the labels whose values pods are to share.
func Unlabelled(keys []string, nodes int) gangplan.NodeCause {
	return gangplan.NodeCause{Says: "node(s) without the label " + strings.Join(keys, " or "),
		Kind: "node(s) without the label of a level", Nodes: nodes}
}

// Lacking is the cause of nodes that would be short of a resource without pods, too: one has at most so much of it.
func Lacking(name v1.ResourceName, most int64, nodes int) gangplan.NodeCause {
	return gangplan.NodeCause{Short: string(name), Most: podview.Quantity(name, most).String(), Nodes: nodes}
}

// Fitting adds the nodes on which a pod fits to causes, by domain of the labels keys.
func Fitting(causes []gangplan.NodeCause, keys []string, fits []int) []gangplan.NodeCause {
	all, most := 0, 0
	for _, n := range fits {
		all, most = all+n, max(most, n)
	}
	if all == 0 {
		return causes
	}
	c := gangplan.NodeCause{Fits: true, Nodes: all}
	if len(keys) > 0 {
		c.Says = fmt.Sprintf(", at most %d in one %s", most, keys[len(keys)-1])
	}
	return append(causes, c)
}

// FailingHardware is what Coscheduling says of nodes with failing hardware, which members of gangs keep off.
const FailingHardware = "node(s) had failing hardware"

// stockWords are those of the filters for what a verdict says.
var stockWords = map[verdict]string{
	cordoned:   "node(s) were unschedulable",
	misnamed:   "node(s) didn't match the requested node name",
	tainted:    "node(s) had untolerated taint(s)",
	unselected: "node(s) didn't match Pod's node affinity/selector",
	failing:    FailingHardware,
}

// Cause returns a cause whose words have no amounts.
func Cause(words string, nodes int) gangplan.NodeCause {
	return gangplan.NodeCause{Says: words, Kind: words, Nodes: nodes}
}
