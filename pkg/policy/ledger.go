package policy

import (
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
)

// Ledger counts the licenses that pods hold: those that run, by what informers tell, and those that are about to, by
// what Reserve and Unreserve tell. It counts by pod, so that hearing twice of the same changes nothing. The zero Ledger
// counts for no rules; it is safe for concurrent use.
type Ledger struct {
	mu      sync.Mutex
	set     *Set
	used    []int64
	holders map[string]*holder
}

// holder is a pod that may hold licenses.
type holder struct {
	node string
	// reserved is set from Reserve on, bound once the API server has said on which node the pod is. A pod that is bound
	// stays one whatever Unreserve says: its binding may have failed for the scheduler alone.
	reserved, bound bool
	// pod is kept of one that is reserved, to work out its demand again.
	pod   *v1.Pod
	uses  *Demand
	marks *Marks
}

// Holder is a pod with its node, for Rebuild.
type Holder struct {
	UID, Node string
	Uses      *Demand
	Marks     *Marks
}

// Rebuild makes the ledger count for another set. Bound lists the pods that run, uses says what a pod uses that is only
// reserved, and publish makes the set known to those who call with demands of it; all are called under the lock, so
// that nothing is missed between what one informer has told and the next. It reports whether a rule that both sets have
// has more licenses left than before: pods that run use others now.
func (l *Ledger) Rebuild(set *Set, bound func() []Holder, uses func(pod *v1.Pod, node string) (*Demand, *Marks),
	publish func()) (freed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, usedBefore := l.holders, map[string]int64{}
	for i, used := range l.used {
		usedBefore[l.set.licenses[i].id] = used
	}
	l.set, l.used, l.holders = set, make([]int64, len(set.licenses)), map[string]*holder{}
	for _, h := range bound() {
		known := before[h.UID]
		next := &holder{node: h.Node, bound: true, uses: h.Uses, marks: h.Marks}
		if known != nil && known.reserved {
			next.reserved, next.pod = true, known.pod
		}
		l.put(h.UID, next)
	}
	for uid, h := range before {
		if l.holders[uid] == nil && h.reserved {
			demand, marks := uses(h.pod, h.node)
			l.put(uid, &holder{node: h.node, reserved: true, pod: h.pod, uses: demand, marks: marks})
		}
	}
	publish()
	for i, used := range l.used {
		freed = freed || used < usedBefore[set.licenses[i].id]
	}
	return freed
}

// put counts a holder, which replaces what was known of the pod.
func (l *Ledger) put(uid string, h *holder) {
	l.drop(uid)
	if l.holders == nil {
		l.holders = map[string]*holder{}
	}
	l.holders[uid] = h
	l.count(h, 1)
}

func (l *Ledger) drop(uid string) {
	if h := l.holders[uid]; h != nil {
		l.count(h, -1)
		delete(l.holders, uid)
	}
}

func (l *Ledger) count(h *holder, sign int64) {
	for number, amount := range h.uses.holds(h.marks) {
		l.used[number] += sign * amount
	}
}

// Reserve counts a pod that is about to run on a node. It returns why not if there are too few licenses by now, and
// false if the ledger counts for another set than the pod's demand was worked out for.
func (l *Ledger) Reserve(pod *v1.Pod, node string, uses *Demand, m *Marks) (reason string, ok bool) {
	uid := string(pod.UID)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.set != uses.set {
		return "", false
	}
	if uses.UsesLicenses() {
		left := l.leftFor(uid)
		for number, amount := range uses.holds(m) {
			if r := &uses.set.licenses[number]; m.holds(r.nodes) && left[number] < amount {
				return fmt.Sprintf("license %s was given to another pod meanwhile (%s)", r.license, &r.rule), true
			}
		}
	}
	// A pod that uses none is kept as well: by a policy that comes before it is bound it may use some.
	known := l.holders[uid]
	l.put(uid, &holder{node: node, reserved: true, bound: known != nil && known.bound, pod: pod, uses: uses, marks: m})
	return "", true
}

// Unreserve takes a Reserve back.
func (l *Ledger) Unreserve(uid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.holders[uid]; h != nil {
		if h.reserved = false; !h.bound {
			l.drop(uid)
		}
	}
}

// Bind counts a pod that the API server says is on a node; one without licenses is not kept. It returns false if the
// ledger counts for another set than the pod's demand was worked out for.
func (l *Ledger) Bind(uid, node string, uses *Demand, m *Marks) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch known := l.holders[uid]; {
	case l.set != uses.set:
		return false
	case !uses.UsesLicenses():
		l.drop(uid)
	default:
		next := &holder{node: node, bound: true, uses: uses, marks: m}
		if known != nil && known.reserved {
			next.reserved, next.pod = true, known.pod
		}
		l.put(uid, next)
	}
	return true
}

// Release forgets a pod that is gone or has ended, and reports whether it held licenses.
func (l *Ledger) Release(uid string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.holders[uid]
	l.drop(uid)
	return h != nil && h.uses.UsesLicenses()
}

// Mark notes that a node is in other node sets than before, or known at last.
func (l *Ledger) Mark(node string, set *Set, m *Marks) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if set != l.set {
		return
	}
	for _, h := range l.holders {
		if h.node == node && h.marks != m {
			l.count(h, -1)
			h.marks = m
			l.count(h, 1)
		}
	}
}

// Used returns how many licenses are in use, by the number of the rule, for the set that is counted for.
func (l *Ledger) Used() (*Set, []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.set, slices.Clone(l.used)
}

// left returns what is free without what the pod itself holds, and false for another set than is counted for.
func (l *Ledger) left(set *Set, uid string) ([]int64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if set != l.set {
		return nil, false
	}
	return l.leftFor(uid), true
}

func (l *Ledger) leftFor(uid string) []int64 {
	left := make([]int64, len(l.used))
	for i := range left {
		left[i] = l.set.licenses[i].count - l.used[i]
	}
	if h := l.holders[uid]; h != nil {
		for number, amount := range h.uses.holds(h.marks) {
			left[number] += amount
		}
	}
	return left
}

// counts reports whether the ledger counts the pod.
func (l *Ledger) counts(uid string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holders[uid] != nil
}
