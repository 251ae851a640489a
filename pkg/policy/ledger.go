package policy

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Ledger counts the licenses that pods use by the rules of one Set: bound pods, which informers report, and assumed
// pods, from Reserve on. It counts by pod, so that reports may repeat. All demands and marks must be those of its Set.
// It is not safe for concurrent use.
type Ledger struct {
	set  *Set
	used []int64
	pods map[string]*entry
}

// entry is a pod that may use licenses.
type entry struct {
	pod  *v1.Pod
	node string
	// bound is set once the API server has reported the pod's node. Unreserve does not release such a pod: its binding may
	// have failed for the scheduler alone.
	bound bool
	uses  *Demand
	marks Marks
}

// NewLedger returns an empty ledger.
func NewLedger(set *Set) *Ledger {
	return &Ledger{set: set, used: make([]int64, len(set.licenses)), pods: map[string]*entry{}}
}

// Reserve assumes a pod on a node, or returns why not if there are too few licenses by now.
func (l *Ledger) Reserve(pod *v1.Pod, node string, uses *Demand, m Marks) (reason string) {
	left := l.left(string(pod.UID))
	for number, amount := range uses.amounts(m) {
		if left[number] < amount {
			r := &l.set.licenses[number]
			return fmt.Sprintf("license %s was given to another pod meanwhile (%s)", r.license, &r.rule)
		}
	}
	l.Assume(pod, node, uses, m)
	return ""
}

// Assume counts a pod that is about to be bound to a node, even if there are too few licenses. A pod that uses none is
// kept as well: a policy that comes before it is bound may change that.
func (l *Ledger) Assume(pod *v1.Pod, node string, uses *Demand, m Marks) {
	known := l.pods[string(pod.UID)]
	l.put(&entry{pod: pod, node: node, bound: known != nil && known.bound, uses: uses, marks: m})
}

// Assumed yields the pods that are about to be bound, with their nodes.
func (l *Ledger) Assumed() iter.Seq2[*v1.Pod, string] {
	return func(yield func(*v1.Pod, string) bool) {
		for _, h := range l.pods {
			if !h.bound && !yield(h.pod, h.node) {
				return
			}
		}
	}
}

// Unreserve releases an assumed pod.
func (l *Ledger) Unreserve(uid string) {
	if h := l.pods[uid]; h != nil && !h.bound {
		l.Release(uid)
	}
}

// Bind counts a bound pod; a pod without licenses is not kept.
func (l *Ledger) Bind(pod *v1.Pod, uses *Demand, m Marks) {
	if !uses.UsesLicenses() {
		l.Release(string(pod.UID))
		return
	}
	l.put(&entry{pod: pod, node: pod.Spec.NodeName, bound: true, uses: uses, marks: m})
}

// Release forgets a pod that is gone or has ended.
func (l *Ledger) Release(uid string) {
	if h := l.pods[uid]; h != nil {
		l.count(h, -1)
		delete(l.pods, uid)
	}
}

// Mark records new marks of a node.
func (l *Ledger) Mark(node string, m Marks) {
	for _, h := range l.pods {
		if h.node == node {
			l.count(h, -1)
			h.marks = m
			l.count(h, 1)
		}
	}
}

// put counts an entry in place of an earlier one of the pod.
func (l *Ledger) put(h *entry) {
	uid := string(h.pod.UID)
	l.Release(uid)
	l.pods[uid] = h
	l.count(h, 1)
}

func (l *Ledger) count(h *entry, sign int64) {
	for number, amount := range h.uses.amounts(h.marks) {
		l.used[number] += sign * amount
	}
}

// left returns what is free apart from what the pod itself uses.
func (l *Ledger) left(uid string) []int64 {
	left := make([]int64, len(l.used))
	for i := range left {
		left[i] = l.set.licenses[i].count - l.used[i]
	}
	if h := l.pods[uid]; h != nil {
		for number, amount := range h.uses.amounts(h.marks) {
			left[number] += amount
		}
	}
	return left
}

// Use is how many licenses of a rule are in use.
type Use struct {
	Policy, Rule, License string
	Used, Count           int64
}

// Uses returns how many licenses are in use, by rule.
func (l *Ledger) Uses() []Use {
	uses := make([]Use, len(l.used))
	for i, used := range l.used {
		r := &l.set.licenses[i]
		uses[i] = Use{r.policy, r.name, r.license, used, r.count}
	}
	return uses
}

// Free is how many licenses of each rule are free for one pod. It belongs to one scheduling cycle and is not safe for
// concurrent changes. Count reads the Ledger, too.
type Free struct {
	ledger *Ledger
	// left is by the number of the rule, now and at the start. It is negative where more are used than there are.
	left, atStart []int64
	// changed are the pods that count here and not in the ledger, or in the ledger and not here.
	changed map[string]bool
}

// FreeFor returns what is free for a pod.
func (l *Ledger) FreeFor(uid string) *Free {
	left := l.left(uid)
	return &Free{ledger: l, left: left, atStart: slices.Clone(left), changed: map[string]bool{}}
}

// Clone returns a copy that may be changed without the original.
func (f *Free) Clone() *Free {
	return &Free{f.ledger, slices.Clone(f.left), f.atStart, maps.Clone(f.changed)}
}

// Count sets whether a pod on a node counts from now on.
func (f *Free) Count(uid string, uses *Demand, m Marks, counts bool) {
	if counted := (f.ledger.pods[uid] != nil) != f.changed[uid]; counted == counts {
		return
	}
	f.changed[uid] = !f.changed[uid]
	for number, amount := range uses.amounts(m) {
		if counts {
			amount = -amount
		}
		f.left[number] += amount
	}
}

// Refuses returns why the pod may not run on the node, and whether evicting pods may help; nothing if it may.
func (d *Demand) Refuses(m Marks, f *Free) (reason string, evictable bool) {
	if reason := d.Forbids(m); reason != "" {
		return reason, false
	}
	for number, amount := range d.amounts(m) {
		if f.left[number] >= amount {
			continue
		}
		r := &d.set.licenses[number]
		soon := ""
		if n := f.atStart[number] - f.left[number]; n > 0 {
			soon = fmt.Sprintf(" and %d planned for other pods", n)
		}
		return fmt.Sprintf("node(s) without a free license %s: %d of %d in use%s, the pod uses %d (%s)", r.license,
			r.count-max(f.left[number], f.atStart[number]), r.count, soon, amount, &r.rule), r.count >= amount
	}
	return "", false
}
