package capacity

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
)

// ShapeKey is equal for pods that fit the same nodes in the same numbers by their requests, node selector, required
// node affinity, tolerations and the rules of plugins. Labels, other annotations and indices make no difference.
type ShapeKey string

// shape is what is known of the pods of one shape.
type shape struct {
	key ShapeKey
	// users counts how often the shape was acquired.
	users int
	// at is the position among the live shapes.
	at   int
	asks []ask
	rule *placementRule
	// bounds are the asks that limit the number of pods.
	bounds []bound
	// total is how many pods fit on all nodes together at most.
	total slots
	// gained is set if more pods fit on some node than before.
	gained bool
}

// slots is how many pods fit at most: into what is free, and if no pod ran.
type slots struct{ now, empty int64 }

// ask is how much of a resource one pod requests.
type ask struct {
	name   v1.ResourceName
	amount int64
}

func keyOf(asks []ask, rule *placementRule) ShapeKey {
	written := []byte(rule.description)
	for _, a := range asks {
		written = fmt.Appendf(written, "%s=%d,", a.name, a.amount)
	}
	sum := sha256.Sum256(written)
	return ShapeKey(sum[:16])
}

// asksOf returns what one pod requests of what is compared, in the order of the names.
func asksOf(pod *v1.Pod, filters *process.Traits) []ask {
	amounts := podview.Amounts(podview.Requests(pod))
	amounts[v1.ResourcePods] = 1
	asks := make([]ask, 0, len(amounts))
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if filters.Compares(name) {
			asks = append(asks, ask{name: name, amount: amounts[name]})
		}
	}
	return asks
}

// ShapeOf is equal for pods that the index cannot tell apart.
func (x *Index) ShapeOf(pod *v1.Pod) ShapeKey {
	filters := x.profiles.Traits(pod)
	return keyOf(asksOf(pod, filters), ruleOf(pod, filters))
}

// Acquire makes the pod's shape live, or keeps it live, until Release was called as often. Only live shapes are
// counted.
func (x *Index) Acquire(pod *v1.Pod) ShapeKey {
	filters := x.profiles.Traits(pod)
	asks, rule := asksOf(pod, filters), ruleOf(pod, filters)
	key := keyOf(asks, rule)
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.shapes.byKey[key]; s != nil {
		s.users++
		return key
	}
	if known := x.shapes.rules[rule.description]; known != nil {
		rule = known
	} else {
		rule.judgeAll(x.nodes.slots)
		x.shapes.rules[rule.description] = rule
	}
	rule.shapes++
	s := &shape{key: key, users: 1, at: len(x.shapes.live), asks: asks, rule: rule, bounds: x.resources.bounds(asks)}
	for _, n := range x.nodes.existing() {
		s.count(slots{}, s.slots(n, true))
	}
	s.gained = false
	x.shapes.byKey[key] = s
	x.shapes.live = append(x.shapes.live, s)
	return key
}

// Retain is Acquire for a shape that is live.
func (x *Index) Retain(key ShapeKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.shapes.byKey[key].users++
}

// Release undoes one Acquire or Retain. The last one forgets the shape.
func (x *Index) Release(key ShapeKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.shapes.byKey[key]
	if s == nil {
		return
	}
	if s.users--; s.users > 0 {
		return
	}
	delete(x.shapes.byKey, key)
	last := x.shapes.live[len(x.shapes.live)-1]
	x.shapes.live[s.at], last.at = last, s.at
	x.shapes.live[len(x.shapes.live)-1] = nil
	x.shapes.live = x.shapes.live[:len(x.shapes.live)-1]
	if s.rule.shapes--; s.rule.shapes == 0 {
		delete(x.shapes.rules, s.rule.description)
	}
}

// admits reports whether pods of the shape may be on the node, whatever they request.
func (s *shape) admits(n *nodeEntry) bool { return s.rule.verdicts[n.slot] == admitted }

// slotsOn returns how many pods of the shape fit into what is free on the node.
func (s *shape) slotsOn(n *nodeEntry) int64 {
	if !s.admits(n) {
		return 0
	}
	return slotsOn(s.bounds, n.has, n.used)
}

// slotsOnEmpty returns how many pods of the shape fit on the node if no pod runs there.
func (s *shape) slotsOnEmpty(n *nodeEntry) int64 {
	if !s.admits(n) {
		return 0
	}
	return slotsOn(s.bounds, n.has, nil)
}

// slots returns how many pods of the shape fit on the node; without empty, only how many fit into what is free.
func (s *shape) slots(n *nodeEntry, empty bool) slots {
	of := slots{now: s.slotsOn(n)}
	if empty {
		of.empty = s.slotsOnEmpty(n)
	}
	return of
}

// count counts what has changed on a node.
func (s *shape) count(before, after slots) {
	s.total.now += after.now - before.now
	s.total.empty += after.empty - before.empty
	s.gained = s.gained || after.now > before.now || after.empty > before.empty
}
