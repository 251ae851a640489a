package gpu

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// maxLinkScore is the score of a set of GPUs with full NVLink bandwidth between each pair.
const maxLinkScore = 100

// maxTabled is the number of GPUs up to which every subset is scored in advance: 2^8 sums, at most 70 of them of equal
// size.
const maxTabled = 8

// MaxLinked is the number of GPUs up to which the links of each pair count. On a larger node they are all alike.
const MaxLinked = 64

// Link is the quality of the connection of one pair of GPUs, 0 to maxLinkScore, and whether it is NVLink.
type Link struct {
	Score  int
	NVLink bool
}

// systemLink is the connection of a pair if nothing better is known: through the sockets' interconnect.
var systemLink = Link{Score: 4}

// ParseLink reads the name of a link as `nvidia-smi topo -m` prints it: NV1 to NV99, PIX, PXB, PHB, NODE or SYS.
// PCIe links are ranked by how far up the hierarchy a transfer climbs; NVLink by the number of bonded links, full
// bandwidth counted from the 12 links of an A100.
func ParseLink(name string) (Link, error) {
	switch name {
	case "PIX":
		return Link{Score: 20}, nil
	case "PXB":
		return Link{Score: 16}, nil
	case "PHB":
		return Link{Score: 12}, nil
	case "NODE":
		return Link{Score: 8}, nil
	case "SYS":
		return systemLink, nil
	}
	if digits, ok := strings.CutPrefix(name, "NV"); ok && len(digits) <= 2 {
		if n, err := strconv.ParseUint(digits, 10, 8); err == nil && n > 0 {
			return Link{Score: min(maxLinkScore, 40+5*int(n)), NVLink: true}, nil
		}
	}
	return Link{}, fmt.Errorf("unknown link %q: must be NV<count>, PIX, PXB, PHB, NODE or SYS", name)
}

// Links is the interconnect of one node's GPUs. It is immutable; nil means that nothing is known of links.
type Links struct {
	n    int
	pair []Link
	// uniform reports that every pair is connected by NVLink alike, so that any set is the best.
	uniform bool
	// sum and connected hold, for each subset of at most maxTabled GPUs, the sum of its pairs' scores and whether
	// NVLink connects it.
	sum       []uint16
	connected []bool
}

// Pair is the link of two GPUs, by their indices.
type Pair struct {
	A, B int
	Link
}

// NewLinks makes an interconnect of n GPUs, at most MaxLinked. Pairs that are not listed are connected through the
// system. It fails for indices that are equal or do not exist.
func NewLinks(n int, pairs []Pair) (*Links, error) {
	l := &Links{n: n, pair: make([]Link, n*n)}
	for i := range l.pair {
		l.pair[i] = systemLink
	}
	for _, p := range pairs {
		if p.A < 0 || p.B < 0 || p.A >= n || p.B >= n || p.A == p.B {
			return nil, fmt.Errorf("link between GPUs %d and %d: indices must differ and be within 0 to %d", p.A, p.B, n-1)
		}
		l.pair[p.A*n+p.B], l.pair[p.B*n+p.A] = p.Link, p.Link
	}
	if n <= maxTabled {
		l.tabulate()
	}
	return l, nil
}

// tabulate scores the subsets.
func (l *Links) tabulate() {
	l.sum = make([]uint16, 1<<l.n)
	l.connected = make([]bool, 1<<l.n)
	for mask := 1; mask < 1<<l.n; mask++ {
		first := bits.TrailingZeros(uint(mask))
		rest := mask &^ (1 << first)
		s := l.sum[rest]
		for m := rest; m != 0; m &= m - 1 {
			s += uint16(l.pair[first*l.n+bits.TrailingZeros(uint(m))].Score)
		}
		l.sum[mask] = s
		l.connected[mask] = l.reach(uint64(mask)) == uint64(mask)
	}
}

// Mesh is the interconnect of any number of GPUs behind NVSwitch or a full NVLink mesh.
func Mesh(n int) *Links { return &Links{n: n, uniform: true} }

// reach is the part of the set that NVLink connects to its lowest GPU.
func (l *Links) reach(set uint64) uint64 {
	seen := set & -set
	for grown := seen; grown != 0; {
		i := bits.TrailingZeros64(grown)
		grown &= grown - 1
		for m := set &^ seen; m != 0; m &= m - 1 {
			j := bits.TrailingZeros64(m)
			if l.pair[i*l.n+j].NVLink {
				seen |= 1 << j
				grown |= 1 << j
			}
		}
	}
	return seen
}

// LargestLinked is the size of the largest NVLink-connected set among the node's first n GPUs, 1 without links.
func (l *Links) LargestLinked(n int) int {
	switch {
	case l == nil || n < 1:
		return 1
	case l.uniform:
		return max(1, min(n, l.n))
	}
	largest := 1
	for left := uint64(1)<<min(n, l.n) - 1; left != 0; {
		part := l.reach(left)
		largest = max(largest, bits.OnesCount64(part))
		left &^= part
	}
	return largest
}

// Best returns the best connected set of k of the free GPUs (bit i = GPU i), its mean link score over all pairs, and
// whether there is such a set. With nvlink it considers only sets that NVLink connects. Among equal sets the one with
// the lowest indices wins. Up to eight GPUs all subsets are compared; beyond, the set is grown greedily from each GPU.
func (l *Links) Best(free uint64, k int, nvlink bool) (set uint64, score int, ok bool) {
	if k < 1 || bits.OnesCount64(free) < k {
		return 0, 0, false
	}
	if k == 1 {
		return free & -free, maxLinkScore, true
	}
	if l != nil && l.n < MaxLinked && free >= 1<<l.n {
		l = nil // unknown GPUs
	}
	if l == nil || l.uniform {
		if score, ok = l.alike(k, nvlink); !ok {
			return 0, 0, false
		}
		return lowest(free, k), score, true
	}
	pairs := k * (k - 1) / 2
	best := -1
	if l.sum != nil {
		// Gosper's hack: the masks of k bits in ascending order.
		for mask := uint64(1)<<k - 1; mask < 1<<l.n; {
			if mask&^free == 0 && (!nvlink || l.connected[mask]) && int(l.sum[mask]) > best {
				best, set = int(l.sum[mask]), mask
			}
			low := mask & -mask
			up := mask + low
			mask = up | (mask^up)/low>>2
		}
		return set, max(best, 0) / pairs, best >= 0
	}
	for m := free; m != 0; m &= m - 1 {
		if grown, sum, ok := l.grow(m&-m, free, k, nvlink); ok && sum > best {
			best, set = sum, grown
		}
	}
	return set, max(best, 0) / pairs, best >= 0
}

// alike is the score of any k GPUs where the links of all pairs are alike or unknown, and whether there is such a set.
func (l *Links) alike(k int, nvlink bool) (score int, ok bool) {
	switch {
	case k == 1 || l != nil && l.uniform:
		return maxLinkScore, true
	case nvlink:
		return 0, false
	default:
		return systemLink.Score, true
	}
}

// grow adds to the set, one by one, the free GPU with the best links to it.
func (l *Links) grow(set, free uint64, k int, nvlink bool) (uint64, int, bool) {
	sum := 0
	for bits.OnesCount64(set) < k {
		bestGPU, bestSum := -1, -1
		for m := free &^ set; m != 0; m &= m - 1 {
			j := bits.TrailingZeros64(m)
			s, linked := 0, false
			for in := set; in != 0; in &= in - 1 {
				p := l.pair[bits.TrailingZeros64(in)*l.n+j]
				s += p.Score
				linked = linked || p.NVLink
			}
			if (linked || !nvlink) && s > bestSum {
				bestGPU, bestSum = j, s
			}
		}
		if bestGPU < 0 {
			return 0, 0, false
		}
		set |= 1 << bestGPU
		sum += bestSum
	}
	return set, sum, true
}

// lowest is the k lowest bits of the set.
func lowest(set uint64, k int) uint64 {
	var out uint64
	for range k {
		out |= set & -set
		set &= set - 1
	}
	return out
}

// deviceSet is which of a node's devices have something in common.
type deviceSet struct {
	// mask has a bit for each of the first MaxLinked.
	mask  uint64
	count int
}

func (inv *Inventory) devicesThat(belong func(Device) bool) deviceSet {
	var s deviceSet
	for i, d := range inv.Devices {
		if belong(d) {
			s.mask |= 1 << i
			s.count++
		}
	}
	return s
}

// best is Links.Best for a node of any number of GPUs. With more than MaxLinked all sets are alike, and set is 0.
func (inv *Inventory) best(of deviceSet, k int, nvlink bool) (set uint64, score int, ok bool) {
	if len(inv.Devices) <= MaxLinked {
		return inv.Links.Best(of.mask, k, nvlink)
	}
	if k < 1 || of.count < k {
		return 0, 0, false
	}
	score, ok = inv.Links.alike(k, nvlink)
	return 0, score, ok
}

// bestFree is best for the devices without any assigned part. Where the kubelet chooses and which devices are free
// is not known, any may be: then the best set of all counts.
func (inv *Inventory) bestFree(k int, nvlink bool) (score int, ok bool) {
	unknown := inv.Mode == ModeDevicePlugin && !inv.IndexKnown
	free := inv.devicesThat(func(d Device) bool { return d.whole() || unknown && !d.Unhealthy })
	_, score, ok = inv.best(free, k, nvlink)
	return score, ok
}
