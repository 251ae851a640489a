package gpu

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"berth.dev/berth/test/harness/require"
)

func TestParseLink(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Link{
		"NV1": {45, true}, "NV2": {50, true}, "NV12": {100, true}, "NV18": {100, true},
		"PIX": {20, false}, "PXB": {16, false}, "PHB": {12, false}, "NODE": {8, false}, "SYS": {4, false},
	} {
		if got, err := ParseLink(name); err != nil || got != want {
			t.Errorf("ParseLink(%q) = %v, %v, want %v", name, got, err, want)
		}
	}
	for _, name := range []string{"", "NV", "NV0", "NV-1", "NV100", "NVx", "nv12", "X", "PIX "} {
		if got, err := ParseLink(name); err == nil {
			t.Errorf("ParseLink(%q) = %v, want an error", name, got)
		}
	}
}

// pairsOf connects 0-1 and 2-3 by NVLink, the rest through the system.
func pairsOf(t require.TB, n int) *Links {
	var pairs []Pair
	for i := 0; i+1 < n; i += 2 {
		pairs = append(pairs, Pair{i, i + 1, Link{maxLinkScore, true}})
	}
	links, err := NewLinks(n, pairs)
	require.NoError(t, err)
	return links
}

func TestBestSet(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		links  *Links
		free   uint64
		k      int
		nvlink bool
		set    uint64
		score  int
		ok     bool
	}{
		{"a linked pair beats lower indices", pairsOf(t, 4), 0b1101, 2, false, 0b1100, 100, true},
		{"of equal pairs the lower indices win", pairsOf(t, 4), 0b1111, 2, false, 0b0011, 100, true},
		{"a required pair is found", pairsOf(t, 4), 0b1101, 2, true, 0b1100, 100, true},
		{"a required pair is missing", pairsOf(t, 4), 0b0101, 2, true, 0, 0, false},
		{"without it the pair is poor", pairsOf(t, 4), 0b0101, 2, false, 0b0101, 4, true},
		{"four of two pairs are a mixture", pairsOf(t, 4), 0b1111, 4, false, 0b1111, (2*100 + 4*4) / 6, true},
		{"too few are free", pairsOf(t, 4), 0b0001, 2, false, 0, 0, false},
		{"one GPU is always well linked", nil, 0b0110, 1, true, 0b0010, maxLinkScore, true},
		{"unknown links are poor", nil, 0b0110, 2, false, 0b0110, 4, true},
		{"unknown links are not NVLink", nil, 0b0110, 2, true, 0, 0, false},
		{"sixteen GPUs are searched greedily", pairsOf(t, 16), 0b1100_0000_0000_0101, 2, true, 0b1100_0000_0000_0000, 100,
			true},
		{"a mesh of sixteen", Mesh(16), 0xffff, 16, true, 0xffff, 100, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			set, score, ok := tc.links.Best(tc.free, tc.k, tc.nvlink)
			if set != tc.set || score != tc.score || ok != tc.ok {
				t.Errorf("Best = %b, %d, %v, want %b, %d, %v", set, score, ok, tc.set, tc.score, tc.ok)
			}
		})
	}
}

func TestNewLinksRefusesWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]int{{0, 0}, {-1, 0}, {0, 4}, {4, 0}} {
		if _, err := NewLinks(4, []Pair{{pair[0], pair[1], systemLink}}); err == nil {
			t.Errorf("NewLinks with %v succeeded", pair)
		}
	}
}

func TestLargestLinked(t *testing.T) {
	t.Parallel()
	var none *Links
	for want, l := range map[int]*Links{1: none, 2: pairsOf(t, 4), 8: Mesh(8)} {
		if got := l.LargestLinked(8); got != want {
			t.Errorf("LargestLinked = %d, want %d", got, want)
		}
	}
}

// TestBestSetIsBest compares the tabled search with one that looks at each subset again.
func TestBestSetIsBest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, maxTabled).Draw(t, "n")
		var pairs []Pair
		score := map[[2]int]Link{}
		for i := range n {
			for j := i + 1; j < n; j++ {
				l := Link{rapid.IntRange(0, 100).Draw(t, "score"), rapid.Bool().Draw(t, "nvlink")}
				pairs = append(pairs, Pair{j, i, l})
				score[[2]int{i, j}] = l
			}
		}
		l, err := NewLinks(n, pairs)
		require.NoError(t, err)
		free := rapid.Uint64Range(0, 1<<n-1).Draw(t, "free")
		k := rapid.IntRange(2, n).Draw(t, "k")
		best, found := 0, false
		for mask := range uint64(1) << n {
			if mask&^free != 0 || bits.OnesCount64(mask) != k {
				continue
			}
			sum := 0
			for p, link := range score {
				if mask&(1<<p[0]) != 0 && mask&(1<<p[1]) != 0 {
					sum += link.Score
				}
			}
			best, found = max(best, sum/(k*(k-1)/2)), true
		}
		set, got, ok := l.Best(free, k, false)
		if ok != found || got != best || ok && (set&^free != 0 || bits.OnesCount64(set) != k) {
			t.Fatalf("Best = %b, %d, %v, want score %d, %v", set, got, ok, best, found)
		}
		if set, _, ok := l.Best(free, k, true); ok && l.reach(set) != set {
			t.Fatalf("set %b is not connected", set)
		}
	})
}
