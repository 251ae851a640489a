package topology

import (
	"math"
	"strings"
	"unique"
)

// Place is where a node is. It does not change once made.
type Place struct {
	node string
	// domains are those of the node, the narrowest first; the zero handle where the node lies in none of a level. Each
	// is named by its own name and those of all wider domains of the node, so that two racks of the same name in two
	// zones are two domains.
	domains []unique.Handle[string]
}

// NewPlace makes the place of a node. Path holds its domain at each level, the widest level first; empty where it lies
// in none. All nodes have the same number of levels.
func NewPlace(node string, path []string) *Place {
	p := &Place{node: node, domains: make([]unique.Handle[string], len(path))}
	var name strings.Builder
	for i, domain := range path {
		if domain == "" {
			continue
		}
		// The level is part of the name: a zone and a rack below no zone may be called the same.
		name.WriteByte(byte(i))
		name.WriteString(domain)
		name.WriteByte(0)
		p.domains[len(path)-1-i] = unique.Make(name.String())
	}
	return p
}

// Tally counts the traffic of a pod with its peers by domain, so that the distance of a node is added up by level and
// not by peer. After the last Add it may be read concurrently.
type Tally struct {
	total   int64
	nodes   map[string]int64
	domains map[unique.Handle[string]]int64
}

// NewTally returns a tally without peers.
func NewTally() *Tally {
	return &Tally{nodes: map[string]int64{}, domains: map[unique.Handle[string]]int64{}}
}

// Add counts traffic with peers at a place.
func (t *Tally) Add(at *Place, traffic int64) {
	t.total += traffic
	t.nodes[at.node] += traffic
	for _, d := range at.domains {
		if d != (unique.Handle[string]{}) {
			t.domains[d] += traffic
		}
	}
}

// Total is the traffic with all peers.
func (t *Tally) Total() int64 { return t.total }

// Distances are by the narrowest domain that two nodes share: the same node first, then the levels from the narrowest
// to the widest, then no domain. They never decrease.
type Distances []int64

// Mean returns the mean distance between a node and all peers, by traffic, rounded; 0 without traffic.
func (t *Tally) Mean(at *Place, d Distances) int64 {
	if t.total <= 0 {
		return 0
	}
	sum := 0.0
	for i, traffic := range t.Split(at) {
		sum += float64(traffic) * float64(d[i])
	}
	return int64(math.Round(sum / float64(t.total)))
}

// Split returns the traffic by the narrowest domain that the node shares with the peer, in the order of Distances.
func (t *Tally) Split(at *Place) []int64 {
	split := make([]int64, len(at.domains)+2)
	shared := t.nodes[at.node]
	split[0] = shared
	for i, domain := range at.domains {
		if domain == (unique.Handle[string]{}) {
			continue
		}
		in := t.domains[domain]
		split[i+1] = in - shared
		shared = in
	}
	split[len(split)-1] = t.total - shared
	return split
}

// Nearness maps distances to scores: 100 for the shortest, about 50 for twice that, at most 99 for any longer one.
// slack is added to both, so that tiny distances do not count as very different.
func Nearness(distance, shortest, slack int64) int64 {
	if distance <= shortest {
		return 100
	}
	score := 100 * (float64(shortest) + float64(slack)) / (float64(distance) + float64(slack))
	return min(99, int64(math.Round(score)))
}
