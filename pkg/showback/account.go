package showback

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/pkg/price"
)

// Node is one that costs money for the whole time of a statement.
type Node struct {
	Name string
	// Split is its price over its resources; Priced says that it has one.
	Split  price.Split
	Priced bool
}

// Use is the time that a pod has its part of a node.
type Use struct {
	Node, Key string
	From      time.Time
	// To is zero for a pod that never ends.
	To time.Time
	// Request is what it holds of the node.
	Request price.Capacity
	// KeepsNode says that the node is in use by it; pods that belong to their node do not keep it.
	KeepsNode bool
}

// maxDays bounds the days of a statement: a hundred years, as long as anything in a trace may last.
const maxDays = 36525

// maxBill leaves room to add up.
const maxBill = int64(1_000_000_000_000 * price.Dollar)

// Account divides what the nodes cost from one instant to another. Its result depends on neither order. Uses of nodes
// that are not given are an error: their cost would be missing.
func Account(from, to time.Time, nodes []Node, uses []Use) (*Statement, error) {
	from, to = from.UTC(), to.UTC()
	if !from.Before(to) {
		return nil, fmt.Errorf("a statement from %s to %s: there is no time between them", from.Format(time.RFC3339),
			to.Format(time.RFC3339))
	}
	if to.Sub(from) > maxDays*24*time.Hour {
		return nil, fmt.Errorf("a statement from %s to %s: that is more than 100 years", from.Format(time.RFC3339),
			to.Format(time.RFC3339))
	}
	bill := wide{}
	for _, n := range nodes {
		bill = bill.plus(product(int64(n.Split.Price), int64(to.Sub(from))))
	}
	if dollars, _ := bill.over(moneyUnit); dollars >= maxBill {
		return nil, fmt.Errorf("a statement from %s to %s: nodes that cost more than a trillion dollars",
			from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	b := newBook(from, to)
	byNode := make(map[string][]Use, len(nodes))
	for _, n := range nodes {
		if _, twice := byNode[n.Name]; twice {
			return nil, fmt.Errorf("node %q is there twice", n.Name)
		}
		byNode[n.Name] = nil
	}
	for _, u := range uses {
		if _, known := byNode[u.Node]; !known {
			return nil, fmt.Errorf("a use of node %q, which is not known", u.Node)
		}
		if u.From.Before(from) {
			u.From = from
		}
		if u.To.IsZero() || u.To.After(to) {
			u.To = to
		}
		if u.From.Before(u.To) {
			byNode[u.Node] = append(byNode[u.Node], u)
		}
	}
	for _, n := range nodes {
		b.node(n, byNode[n.Name])
	}
	s := b.statement()
	s.Nodes = len(nodes)
	for _, n := range nodes {
		if !n.Priced {
			s.NodesWithoutPrice++
		}
	}
	return s, nil
}

// change is the beginning or the end of a use.
type change struct {
	at    time.Time
	use   *Use
	begin bool
}

// node accounts for one node: between two changes on it the rates stay the same.
func (b *book) node(n Node, uses []Use) {
	changes := make([]change, 0, 2*len(uses))
	for i := range uses {
		changes = append(changes, change{uses[i].From, &uses[i], true}, change{uses[i].To, &uses[i], false})
	}
	slices.SortFunc(changes, func(x, y change) int { return x.at.Compare(y.at) })
	held := tenants{node: &n, keys: map[string]holding{}}
	since := b.from
	for i := 0; i < len(changes); {
		at := changes[i].at
		b.span(&held, since, at)
		for ; i < len(changes) && changes[i].at.Equal(at); i++ {
			held.change(changes[i].use, changes[i].begin)
		}
		since = at
	}
	b.span(&held, since, b.to)
}

// tenants are the keys that hold parts of a node at one time.
type tenants struct {
	node *Node
	keys map[string]holding
	// total is what all of them hold, and keeping how many pods keep the node in use.
	total   holding
	keeping int
}

type holding struct {
	pods     int
	milliGPU int64
	share    price.MicroDollars
}

func (t *tenants) change(u *Use, begin bool) {
	sign := int64(1)
	if !begin {
		sign = -1
	}
	var share price.MicroDollars
	if t.node.Priced {
		share = t.node.Split.Share(u.Request)
	}
	h := t.keys[u.Key]
	for _, h := range []*holding{&h, &t.total} {
		h.pods += int(sign)
		h.milliGPU += sign * u.Request.MilliGPU
		h.share += price.MicroDollars(sign) * share
	}
	if u.KeepsNode {
		t.keeping += int(sign)
	}
	if h.pods == 0 {
		delete(t.keys, u.Key)
	} else {
		t.keys[u.Key] = h
	}
}

// pays is what a key pays an hour. Pods that together hold more than the node has pay its price in proportion.
func (t *tenants) pays(h holding) price.MicroDollars {
	if t.total.share <= t.node.Split.Price {
		return h.share
	}
	return t.node.Split.Price.Scale(int64(h.share), int64(t.total.share))
}

// span accounts for a time in which nothing changes on a node, day by day.
func (b *book) span(t *tenants, from, to time.Time) {
	b.each(from, to.Sub(from), func(d *daySums, lasting time.Duration) { d.add(t, lasting) })
}

// add accounts for a time within one day.
func (d *daySums) add(t *tenants, lasting time.Duration) {
	var hourly price.MicroDollars
	if t.node.Priced {
		hourly = t.node.Split.Price
	}
	paid := price.MicroDollars(0)
	for key, h := range t.keys {
		pays := t.pays(h)
		paid += pays
		d.lines[key] = d.lines[key].plus(h.milliGPU, pays, lasting)
	}
	free := max(0, t.node.Split.Allocatable.MilliGPU-t.total.milliGPU)
	if t.keeping > 0 {
		d.idle = d.idle.plus(free, hourly-paid, lasting)
	} else {
		d.empty = d.empty.plus(free, hourly-paid, lasting)
	}
	if !t.node.Priced {
		d.unpriced = d.unpriced.plus(product(t.total.milliGPU+free, int64(lasting)))
	}
}

// sums are GPU time in milli-GPU·nanoseconds and money in micro-dollars an hour times nanoseconds.
type sums struct {
	gpu, money wide
	// used is a part of gpu, where it was measured.
	used     wide
	measured bool
}

func (s sums) plus(milliGPU int64, hourly price.MicroDollars, lasting time.Duration) sums {
	s.gpu, s.money = s.gpu.plus(product(milliGPU, int64(lasting))), s.money.plus(product(int64(hourly), int64(lasting)))
	return s
}

func sortedLines(lines []Line) {
	slices.SortFunc(lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(b.MicroDollars, a.MicroDollars), cmp.Compare(b.MilliGPUSeconds, a.MilliGPUSeconds),
			cmp.Compare(a.Key, b.Key))
	})
}
