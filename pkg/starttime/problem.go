package starttime

import (
	"slices"
	"time"

	"berth.dev/berth/pkg/runtimes"
	"berth.dev/berth/pkg/tree"
)

// Node is a node that may be kept.
type Node struct {
	Name string
	// Domains says for each shape in which domain the node is: members of one gang may share nodes of one domain only. A
	// negative one means that no member may use the node. Without any, all nodes are in one domain.
	Domains []int
	// Ends forecast the ends of the pods that have to end, in the order of Order.
	Ends []runtimes.Forecast
	// Fits says for each shape how many of its members fit when the first pods of Ends have gone: none of them, one,
	// and so on.
	Fits [][]int
	// Free says for the first shape of a gang with sets and several shapes how much is then free of each resource that
	// the Asks of its Tree have.
	Free [][][]int64
}

// domain is the node's for the shape.
func (n *Node) domain(shape int) int {
	if n.Domains == nil {
		return 0
	}
	return n.Domains[shape]
}

// Order sorts the positions of pods by the ends that are forecast, the soonest first.
func Order(ends []runtimes.Forecast) []int {
	order := make([]int, len(ends))
	for i := range order {
		order[i] = i
	}
	middle := len(runtimes.Levels) / 2
	slices.SortStableFunc(order, func(a, b int) int { return int(ends[a][middle].Seconds() - ends[b][middle].Seconds()) })
	return order
}

// Gang is a waiting gang, or any pods that have to start together.
type Gang struct {
	Name string
	// Members are those that have to start, the hardest to place first.
	Members []Members
	// Run forecasts how long the gang runs once it has started.
	Run    runtimes.Forecast
	Waited time.Duration
	// MaxNodes is how many nodes may be kept for it.
	MaxNodes int
	// Tree has the sets of a gang that is divided into groups or segments, and the domain of each of the nodes at their
	// levels; nil for others. Its classes are Members. What nodes have is known of the nodes.
	Tree *tree.Problem
}

// Members is a number of members that ask for the same.
type Members struct {
	// Shape is the position of their row in the Fits of each node.
	Shape, Count int
}

// Reservation is where and when a gang is to start.
type Reservation struct {
	Gang   string
	Places []Place
	// At is when the reservation was made. Start forecasts how long after that the gang can start.
	At    time.Time
	Start runtimes.Forecast
	// Told is the start to tell to users.
	Told Told
	// Slipped is set if the start that is told is behind the interval that was told before.
	Slipped bool
	// Held is set if the nodes are kept, Firm if the start has slipped too often to let in pods that may be late.
	Held, Firm bool
	// Until is when the gang is to start at the latest as far as pods that enter are concerned. Once the start is firm,
	// it is the start that was told then.
	Until  time.Time
	waited time.Duration
}

// Now reports whether all places are free. A pod whose end is due has not gone.
func (r *Reservation) Now() bool {
	return r.Start.At(1) == 0 && !slices.ContainsFunc(r.Places, func(p Place) bool { return p.Gone > 0 })
}

// Place is room for a number of members on a node.
type Place struct {
	// Node is the position of the node, Members that of the members of the gang.
	Node, Members int
	Count         int
	// Gone is how many of the node's pods have to go, the first of Ends.
	Gone int
	// Ready is by when they have gone with the probability Settings.Ready.
	Ready time.Duration
}

// Told is a start with an interval that holds it four times in five.
type Told struct{ Earliest, Likely, Latest time.Time }
