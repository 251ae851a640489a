package gangplan

import (
	"cmp"
	"slices"
	"strings"

	"berth.dev/berth/pkg/gang"
)

// mostOrders bounds the orders in which classes are tried, at the cost of a dry run each.
const mostOrders = 6

// order is how the members are tried: of first the number that the minimum of their role needs, then all others as in
// rest.
type order struct {
	first, rest []gang.Member
	// classes is set if what is left over shows what to try next.
	classes []string
}

// orders gives the orders in which Build tries the members.
type orders struct {
	byClass map[string][]gang.Member
	members int
	// fixed are those that are tried first, whatever comes of them.
	fixed []order
	// hardest lists the classes, hardest first; learnt has those first that were left over.
	hardest, learnt []string
	// seen holds the orders of classes that were tried, and ahead counts the classes that have gone before all others.
	seen  map[string]bool
	ahead int
}

func newOrders(members []gang.Member, need gang.Minimum, hardness func(class string) float64) *orders {
	o := &orders{byClass: map[string][]gang.Member{}, members: len(members), seen: map[string]bool{}}
	for _, m := range members {
		if o.byClass[m.Class] == nil {
			o.hardest = append(o.hardest, m.Class)
		}
		o.byClass[m.Class] = append(o.byClass[m.Class], m)
	}
	if len(o.hardest) <= 1 {
		o.fixed, o.hardest = []order{{first: members, rest: members}}, nil
		return o
	}
	slices.SortStableFunc(o.hardest, func(a, b string) int { return cmp.Compare(hardness(b), hardness(a)) })
	o.learnt = o.hardest
	o.seen[strings.Join(o.hardest, "\x00")] = true
	hardest, easiest := o.row(o.hardest), o.row(o.easiest())
	o.fixed = []order{{rest: hardest, classes: o.hardest}}
	if len(need.Roles) > 0 {
		o.fixed = append(o.fixed, order{first: hardest, rest: easiest}, order{first: easiest, rest: easiest})
	}
	o.fixed = append(o.fixed, order{rest: easiest})
	return o
}

func (o *orders) easiest() []string {
	easiest := slices.Clone(o.hardest)
	slices.Reverse(easiest)
	return easiest
}

// row lists the members of the classes one class after the other.
func (o *orders) row(classes []string) []gang.Member {
	out := make([]gang.Member, 0, o.members)
	for _, class := range classes {
		out = append(out, o.byClass[class]...)
	}
	return out
}

// next returns what to try now; ok is false if nothing is left.
func (o *orders) next() (next order, ok bool) {
	if len(o.fixed) > 0 {
		next, o.fixed = o.fixed[0], o.fixed[1:]
		return next, true
	}
	if key := strings.Join(o.learnt, "\x00"); !o.seen[key] {
		o.seen[key] = true
		row := o.row(o.learnt)
		return order{first: row, rest: row, classes: o.learnt}, true
	}
	// There is nothing to learn any more. The hardest has gone first already.
	if o.ahead++; o.ahead >= len(o.hardest) {
		return order{}, false
	}
	row := o.row(ahead(o.easiest(), func(class string) bool { return class == o.hardest[o.ahead] }))
	return order{first: row, rest: row}, true
}

// learn has what was left over tried first the next time.
func (o *orders) learn(tried order, short []Shortage) {
	if tried.classes != nil {
		o.learnt = ahead(tried.classes, func(class string) bool {
			return slices.ContainsFunc(short, func(s Shortage) bool { return s.Class == class })
		})
	}
}

// ahead returns the classes with those first for which goes holds.
func ahead[C any](classes []C, goes func(class C) bool) []C {
	out := slices.Clone(classes)
	slices.SortStableFunc(out, func(a, b C) int {
		switch first := goes(a); {
		case first == goes(b):
			return 0
		case first:
			return -1
		default:
			return 1
		}
	})
	return out
}
