package policy

import (
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Free says how many licenses of each rule are free for one pod, and what to say where they are too few. It belongs to
// one scheduling cycle and is not safe for concurrent changes.
type Free struct {
	demand *Demand
	// left is by the number of the rule. It is negative where more are used than there are.
	left []int64
	// planned is how many of those that are not left are about to be used, by pods that are not placed yet.
	planned []int64
	// taken and freed are the pods that were added to and removed from what the ledger counts.
	taken, freed map[string]bool
	// why is what to say of a rule with too few left, by its number.
	why map[int]string
}

// Clone returns a copy that may be changed without the original.
func (f *Free) Clone() *Free {
	c := *f
	c.left, c.planned, c.taken, c.freed, c.why = slices.Clone(f.left), slices.Clone(f.planned), maps.Clone(f.taken),
		maps.Clone(f.freed), maps.Clone(f.why)
	return &c
}

// FreeFor returns what the ledger has free, for the demand of a pod.
func (d *Demand) FreeFor(l *Ledger, uid string) (*Free, bool) {
	left, ok := l.left(d.set, uid)
	if !ok {
		return nil, false
	}
	f := &Free{demand: d, left: left, planned: make([]int64, len(left)), taken: map[string]bool{},
		freed: map[string]bool{}, why: map[int]string{}}
	for i := range d.licenses {
		for _, number := range d.licenses[i].rules {
			f.why[number] = f.lack(number, d.licenses[i].amount)
		}
	}
	return f, true
}

// lack says that too few are left of what a rule counts.
func (f *Free) lack(number int, amount int64) string {
	r := &f.demand.set.licenses[number]
	soon := ""
	if n := f.planned[number]; n > 0 {
		soon = fmt.Sprintf(" and %d about to be", n)
	}
	return fmt.Sprintf("node(s) without a free license %s: %d of %d in use%s, the pod uses %d (%s)",
		r.license, r.count-f.left[number]-f.planned[number], r.count, soon, amount, &r.rule)
}

// Add counts a pod on a node that the ledger does not count, and takes back a Remove.
func (f *Free) Add(l *Ledger, uid string, uses *Demand, m *Marks) {
	counted := l.counts(uid)
	if f.taken[uid] || counted && !f.freed[uid] {
		return
	}
	delete(f.freed, uid)
	if !counted {
		f.taken[uid] = true
	}
	f.change(uses, m, -1, !counted)
}

// Remove gives back what a pod on a node holds.
func (f *Free) Remove(l *Ledger, uid string, uses *Demand, m *Marks) {
	counted := l.counts(uid)
	if f.freed[uid] || !counted && !f.taken[uid] {
		return
	}
	delete(f.taken, uid)
	if counted {
		f.freed[uid] = true
	}
	f.change(uses, m, 1, !counted)
}

func (f *Free) change(uses *Demand, m *Marks, sign int64, planned bool) {
	if uses.set != f.demand.set {
		return // the policies have changed, and Reserve will find out
	}
	for number, amount := range uses.holds(m) {
		f.left[number] += sign * amount
		if planned {
			f.planned[number] -= sign * amount
		}
	}
	for i := range f.demand.licenses {
		for _, number := range f.demand.licenses[i].rules {
			f.why[number] = f.lack(number, f.demand.licenses[i].amount)
		}
	}
}

// holds yields what the pod holds on a node, by the number of the rule.
func (d *Demand) holds(m *Marks) iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		for i := range d.licenses {
			for _, number := range d.licenses[i].rules {
				if m.mayHold(d.set.licenses[number].nodes) && !yield(number, d.licenses[i].amount) {
					return
				}
			}
		}
	}
}

// Refuses returns why the pod may not run on the node, and whether evicting pods may help; nothing if it may.
func (d *Demand) Refuses(m *Marks, f *Free) (reason string, evictable bool) {
	if reason := d.Forbids(m); reason != "" {
		return reason, false
	}
	for i := range d.licenses {
		for _, number := range d.licenses[i].rules {
			if r := &d.set.licenses[number]; m.holds(r.nodes) && f.left[number] < d.licenses[i].amount {
				return f.why[number], r.count >= d.licenses[i].amount
			}
		}
	}
	return "", false
}

// Forbids returns why the pod may not run on the node regardless of what runs there; nothing if it may.
func (d *Demand) Forbids(m *Marks) string {
	for _, r := range d.within {
		switch {
		case m.in.has(r.nodes) || m.ignored.has(r.nodes):
		case m.failed.has(r.nodes):
			return r.failed
		default:
			return r.denied
		}
	}
	for _, r := range d.closed {
		switch {
		case !m.in.has(r.nodes) && !m.failed.has(r.nodes) || d.letIn(r, m):
		case m.failed.has(r.nodes):
			return r.failed
		default:
			return r.kept
		}
	}
	for i := range d.required {
		if reason := d.required[i].misses(m); reason != "" {
			return reason
		}
	}
	for i := range d.licenses {
		if reason := d.licenses[i].misses(d.set, m); reason != "" {
			return reason
		}
	}
	return ""
}

// letIn reports whether another exclusive rule of the policy lets the pod onto the node.
func (d *Demand) letIn(closed *complianceRule, m *Marks) bool {
	for _, r := range d.open {
		if r.policy == closed.policy && m.in.has(r.nodes) {
			return true
		}
	}
	return false
}

// misses returns why the node does not hold the dataset, nothing if it does.
func (d *datasetDemand) misses(m *Marks) string {
	for _, r := range d.rules {
		if m.in.has(r.nodes) || m.ignored.has(r.nodes) {
			return ""
		}
	}
	for _, r := range d.rules {
		if m.failed.has(r.nodes) {
			return r.failed
		}
	}
	return d.elsewhere
}

// misses returns why the license is not available on the node, nothing if it is.
func (l *licenseDemand) misses(s *Set, m *Marks) string {
	covered := false
	for _, number := range l.rules {
		r := &s.licenses[number]
		switch {
		case m.holds(r.nodes) || m.ignored.has(r.nodes):
			covered = true
		case m.failed.has(r.nodes):
			return r.failed
		}
	}
	if !covered {
		return l.elsewhere
	}
	return ""
}
