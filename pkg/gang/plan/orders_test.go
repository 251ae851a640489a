package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/pkg/gang"
)

// amounts are of two resources; most tests use the first alone.
type amounts [2]int

func (a amounts) less(b amounts) amounts { return amounts{a[0] - b[0], a[1] - b[1]} }

// bins is a board of nodes: each class takes so much of them, and may be kept off nodes.
type bins struct {
	// spent is set if the plan has to come to an end.
	spent bool
	free  map[string]amounts
	sizes map[string]amounts
	// barred holds class@node.
	barred map[string]bool
	// fail is the number of the placement that fails with an error, counted from 1.
	fail, placed int
}

func (b *bins) Spent() bool { return b.spent }

// Place takes the node that has the least left over of the first resource.
func (b *bins) Place(m gang.Member) (gang.Assignment, bool, error) {
	if b.placed++; b.placed == b.fail {
		return gang.Assignment{}, false, errors.New("reading node")
	}
	best := ""
	for _, node := range slices.Sorted(maps.Keys(b.free)) {
		if b.fits(m.Class, node) && (best == "" || b.free[node][0] < b.free[best][0]) {
			best = node
		}
	}
	if best == "" {
		return gang.Assignment{}, false, nil
	}
	b.free[best] = b.free[best].less(b.sizes[m.Class])
	return gang.Assignment{UID: m.UID, Node: best}, true, nil
}

func (b *bins) fits(class, node string) bool {
	left := b.free[node].less(b.sizes[class])
	return left[0] >= 0 && left[1] >= 0 && !b.barred[class+"@"+node]
}

// instance is a group and the nodes that it is planned on.
type instance struct {
	members []gang.Member
	need    gang.Minimum
	bins    bins
}

// board returns a copy of the nodes as they are before anything is placed.
func (in *instance) board() (*bins, error) {
	b := in.bins
	b.free = maps.Clone(b.free)
	return &b, nil
}

// build tries orders, the classes that take the most first, on boards of their own.
func (in *instance) build() (*Plan, error) { return in.buildOn(in.board) }

func (in *instance) buildOn(board func() (*bins, error)) (*Plan, error) {
	o := orders{roles: len(in.need.Roles) > 0}
	at := map[string]int{}
	for _, m := range in.members {
		i, known := at[m.Class]
		if !known {
			i = len(o.classes)
			at[m.Class], o.classes = i, append(o.classes, nil)
		}
		o.classes[i] = append(o.classes[i], m)
	}
	slices.SortStableFunc(o.classes, func(a, b []gang.Member) int {
		return in.bins.sizes[b[0].Class][0] - in.bins.sizes[a[0].Class][0]
	})
	return o.best(func(order order) (*Plan, bool, error) {
		b, err := board()
		if err != nil {
			return nil, false, err
		}
		r, enough, err := order.place(in.need, b)
		return &Plan{Result: r, feasible: enough}, enough, err
	})
}

// feasible tries all ways to place the members.
func (in *instance) feasible() bool {
	free := maps.Clone(in.bins.free)
	nodes := slices.Sorted(maps.Keys(free))
	roles := map[string]int{}
	var try func(i, placed int) bool
	try = func(i, placed int) bool {
		if in.need.MetBy(placed, func(role string) int { return roles[role] }) {
			return true
		}
		if i == len(in.members) || placed+len(in.members)-i < in.need.Total {
			return false
		}
		m := &in.members[i]
		size := in.bins.sizes[m.Class]
		tried := map[amounts]bool{}
		for _, node := range nodes {
			left := free[node].less(size)
			if left[0] < 0 || left[1] < 0 || in.bins.barred[m.Class+"@"+node] ||
				(len(in.bins.barred) == 0 && tried[free[node]]) {
				continue
			}
			tried[free[node]] = true
			before := free[node]
			free[node] = left
			roles[m.Role]++
			if try(i+1, placed+1) {
				return true
			}
			roles[m.Role]--
			free[node] = before
		}
		return try(i+1, placed)
	}
	return try(0, 0)
}

// changed returns pending member i with something else about it.
func changed(i int, how func(m *gang.Member)) gang.Member {
	name := fmt.Sprintf("p%02d", i)
	m := gang.Member{Ref: gang.Ref{UID: gang.UID(name), Namespace: "ns", Name: name}, State: gang.Pending, Class: "a",
		Ours: true}
	how(&m)
	return m
}

// instanceOf reads members such as "a a b", sizes such as "a=2 b=1", nodes such as "4 4"; all members are needed.
func instanceOf(members, sizes, nodes string, barred ...string) *instance {
	in := &instance{bins: bins{free: map[string]amounts{}, sizes: map[string]amounts{},
		barred: map[string]bool{}}}
	for i, class := range strings.Fields(members) {
		in.members = append(in.members, changed(i, func(m *gang.Member) { m.Class = class }))
	}
	in.need.Total = len(in.members)
	for _, text := range strings.Fields(sizes) {
		class, size, _ := strings.Cut(text, "=")
		in.bins.sizes[class] = amounts{int(size[0] - '0')}
	}
	for i, text := range strings.Fields(nodes) {
		in.bins.free[fmt.Sprint("n", i)] = amounts{int(text[0] - '0')}
	}
	for _, b := range barred {
		in.bins.barred[b] = true
	}
	return in
}

// One class fits whole domains of its own; each class may be the one that has to go first.
func TestOrdersTriesEachClassFirst(t *testing.T) {
	t.Parallel()
	sizes := "a=3 b=3 c=3 d=3"
	for _, first := range []string{"a", "b", "c", "d"} {
		// All but the first may go anywhere, the first on one node only, which the others like best.
		var barred []string
		for _, node := range []string{"n1", "n2", "n3"} {
			barred = append(barred, first+"@"+node)
		}
		in := instanceOf("a b c d", sizes, "3 4 4 4", barred...)
		if r, err := in.build(); err != nil || !r.Feasible() {
			t.Errorf("class %s has one node only: feasible %t, %v", first, r.Feasible(), err)
		}
	}
}

func TestOrdersFailsWithItsBoards(t *testing.T) {
	t.Parallel()
	in := instanceOf("a b", "a=1 b=1", "4")
	in.bins.fail = 2
	if _, err := in.build(); err == nil {
		t.Error("an error of the board is lost")
	}
	none := errors.New("no snapshot")
	if _, err := in.buildOn(func() (*bins, error) { return nil, none }); !errors.Is(err, none) {
		t.Errorf("error %v, want %v", err, none)
	}
}

// The work is bounded, however many classes there are.
func TestOrdersBoundsItsOrders(t *testing.T) {
	t.Parallel()
	in := &instance{need: gang.Minimum{Total: 40, Roles: map[string]int{"r": 1}},
		bins: bins{free: map[string]amounts{"n": {1}}, sizes: map[string]amounts{}}}
	for i := range 40 {
		class := fmt.Sprint("c", i)
		in.bins.sizes[class] = amounts{1}
		in.members = append(in.members, changed(i, func(m *gang.Member) { m.Class = class }))
	}
	boards := 0
	_, err := in.buildOn(func() (*bins, error) {
		boards++
		return in.board()
	})
	if err != nil || boards != mostOrders {
		t.Errorf("%d dry runs, %v; want %d", boards, err, mostOrders)
	}
}
