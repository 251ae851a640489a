package starttime

import (
	"cmp"
	"math"
	"slices"
	"time"

	"berth.dev/berth/pkg/runtimes"
)

// Single is a pod in no gang that waits.
type Single struct {
	Name string
	// Shape is the position of its row in the Fits of each node.
	Shape  int
	Run    runtimes.Forecast
	Waited time.Duration
	// Backfills is set if nothing is kept from it.
	Backfills bool
}

// Kept is a part of a node that is kept for a gang.
type Kept struct {
	Node  int
	Share float64
	// Start is by when pods have to be gone that enter it; nil if none may.
	Start *Reservation
	// Until is when the gang has ended.
	Until runtimes.Forecast
}

// Estimate is when a single pod is expected to start.
type Estimate struct {
	Single int
	Told   Told
	// Node and Last name the pod, by position, whose end makes the place that the pod is likely to get.
	Node, Last int
}

// Times are compared on a grid whose steps are of 2%, from ten seconds to a month.
const (
	gridFirst = 10 * time.Second
	gridRatio = 1.02
	gridSteps = 630
)

func gridTime(step int) time.Duration {
	return time.Duration(float64(gridFirst) * math.Pow(gridRatio, float64(step)))
}

// PlanSingles tells when single pods start, which come in the order of the queue. As soon as it is likely that as many
// places have come free as the pods before a pod take that ask for no more than it does, and one more, it starts. Pods
// that ask for more do not count: it can pass them. A pod for which there is a place now waits for something else, and
// is told nothing. What pods that start meanwhile give back when they end does not count.
func (b *Board) PlanSingles(nodes []Node, kept []Kept, singles []Single, now time.Time) []Estimate {
	s := &singlesPlan{nodes: nodes, kept: map[int]Kept{}, rule: &b.settings, now: now, most: len(singles),
		shapes: map[int]*shapePlaces{}}
	for _, k := range kept {
		if first, has := s.kept[k.Node]; has {
			first.Share, first.Until = min(first.Share+k.Share, 1), latest(&first.Until, &k.Until)
			k = first
		}
		s.kept[k.Node] = k
	}
	told := make(map[string]*memory, len(singles))
	var out []Estimate
	for i := range singles {
		need := s.need(singles, i)
		likely, ok := s.likely(&singles[i], need)
		if !ok {
			continue
		}
		m := b.gangs[singles[i].Name]
		if m == nil {
			m = &memory{}
		}
		told[singles[i].Name] = m
		r := Reservation{At: now, Start: runtimes.Certain(likely)}
		b.tell(m, &Gang{}, &r)
		next := Estimate{Single: i, Told: r.Told, Node: -1}
		if first := s.shape(singles[i].Shape).first; len(first) >= need && !now.Add(first[need-1].at).After(r.Told.Latest) {
			next.Node, next.Last = first[need-1].node, first[need-1].gone-1
		}
		out = append(out, next)
	}
	b.gangs = told
	return out
}

func latest(a, b *runtimes.Forecast) runtimes.Forecast {
	if a.At(0.5) > b.At(0.5) {
		return *a
	}
	return *b
}

// singlesPlan is what is counted for one plan.
type singlesPlan struct {
	nodes []Node
	kept  map[int]Kept
	rule  *Settings
	now   time.Time
	// most is how many places are told apart.
	most   int
	shapes map[int]*shapePlaces
}

// shapePlaces are the places of a shape.
type shapePlaces struct {
	// open are on nodes where nothing is kept, others on the others.
	open, others []singlePlace
	// total is how many there are on empty nodes, first the first of the open ones, by when they are likely to be free.
	total int
	first []singlePlace
	// counts are the distributions of how many of the open ones are free, by the step of the grid; the last is of all
	// larger numbers.
	counts map[int][]float64
}

// singlePlace is free once the pods of its node from the position from on up to gone have ended. It is that number of
// the places of its node, and of says how many there are.
type singlePlace struct {
	node, from, gone, number, of int
	at                           time.Duration
}

func (s *singlesPlan) shape(shape int) *shapePlaces {
	if known := s.shapes[shape]; known != nil {
		return known
	}
	p := &shapePlaces{counts: map[int][]float64{}}
	s.shapes[shape] = p
	for n := range s.nodes {
		node := &s.nodes[n]
		if node.domain(shape) < 0 {
			continue
		}
		_, most := node.most(shape)
		p.total += most
		_, kept := s.kept[n]
		have, from := 0, 0
		for gone, fit := range node.Fits[shape] {
			if gone > 0 && !node.Ends[gone-1].Ends() || have == s.most {
				break
			}
			if have >= fit {
				continue
			}
			for ; have < min(fit, s.most); have++ {
				place := singlePlace{node: n, from: from, gone: gone, number: have, of: most}
				if kept {
					p.others = append(p.others, place)
					continue
				}
				place.at = runtimes.LastAt(node.Ends[from:gone], 0.5)
				p.open = append(p.open, place)
			}
			from = gone
		}
	}
	p.first = slices.SortedFunc(slices.Values(p.open), func(a, b singlePlace) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.node, b.node), cmp.Compare(a.number, b.number))
	})
	p.first = slices.DeleteFunc(p.first, func(o singlePlace) bool { return o.gone == 0 })
	p.first = p.first[:min(len(p.first), s.most)]
	return p
}

// need returns how many places have to come free for the pod. A pod before it that asks for less takes a part of one.
func (s *singlesPlan) need(singles []Single, i int) int {
	total, before := s.shape(singles[i].Shape).total, 0.0
	for _, other := range singles[:i] {
		if of := s.shape(other.Shape).total; of >= total && of > 0 {
			before += float64(total) / float64(of)
		}
	}
	return 1 + int(before+1e-6)
}

// likely returns when the pod is likely to start, if that is not now and not unknown.
func (s *singlesPlan) likely(pod *Single, need int) (time.Duration, bool) {
	if s.enough(pod, need, -1) || !s.enough(pod, need, gridSteps) {
		return 0, false
	}
	low, high := 0, gridSteps
	for low < high {
		if middle := (low + high) / 2; s.enough(pod, need, middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return gridTime(low), true
}

// enough reports whether it is likely that this many places are free at the step, -1 for now.
func (s *singlesPlan) enough(pod *Single, need, step int) bool {
	p := s.shape(pod.Shape)
	left := time.Duration(0)
	if step >= 0 {
		left = gridTime(step)
	}
	count := p.counts[step]
	if count == nil {
		count = make([]float64, s.most+1)
		count[0] = 1
		for i := range p.open {
			add(count, s.gone(&p.open[i], left))
		}
		p.counts[step] = count
	}
	if len(p.others) > 0 {
		count = slices.Clone(count)
		for i := range p.others {
			add(count, s.besides(pod, &p.others[i], left))
		}
	}
	few := 0.0
	for _, probability := range count[:need] {
		few += probability
	}
	return few <= 0.5
}

// add counts one more place that is free with the probability.
func add(count []float64, probability float64) {
	if probability <= 0 {
		return
	}
	last := len(count) - 1
	count[last] += count[last-1] * probability
	for n := last - 1; n > 0; n-- {
		count[n] += (count[n-1] - count[n]) * probability
	}
	count[0] -= count[0] * probability
}

// gone is the probability that the place is free then.
func (s *singlesPlan) gone(p *singlePlace, left time.Duration) float64 {
	if left == 0 && p.from < p.gone {
		return 0 // one whose end is due has not gone
	}
	probability := 1.0
	for i := p.from; i < p.gone && probability > 0; i++ {
		probability *= s.nodes[p.node].Ends[i].GoneBy(left)
	}
	return probability
}

// besides is the probability that the pod may use by then a place on a node where something is kept for a gang.
func (s *singlesPlan) besides(pod *Single, p *singlePlace, left time.Duration) float64 {
	kept := s.kept[p.node]
	if pod.Backfills || p.number < int(float64(p.of)*(1-kept.Share)+1e-6) {
		return s.gone(p, left)
	}
	after := kept.Until.GoneBy(left)
	if kept.Start == nil {
		return after
	}
	// The longer it waits, the less it may enter.
	enters := func(at time.Duration) bool {
		return s.rule.MayEnter(kept.Start, &pod.Run, pod.Waited+at, s.now.Add(at)) != Refused
	}
	if !enters(0) {
		return after
	}
	if !enters(left) {
		low := time.Duration(0)
		for high := left; high-low > left/64+time.Second; {
			if middle := low + (high-low)/2; enters(middle) {
				low = middle
			} else {
				high = middle
			}
		}
		left = low
	}
	return max(s.gone(p, left), after)
}
