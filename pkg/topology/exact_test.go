package topology

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// spans counts the domains of each level in which nodes lie, apart from those that hold members.
func spans(all []Node, used []int) []int {
	counts := make([]int, len(all[0].Path))
	seen := map[string]bool{}
	for _, n := range all {
		for level := range n.Path {
			if n.Held > 0 {
				seen[fmt.Sprintf("%q", n.Path[:level+1])] = true
			}
		}
	}
	for _, n := range used {
		for level := range counts {
			if key := fmt.Sprintf("%q", all[n].Path[:level+1]); !seen[key] {
				seen[key] = true
				counts[level]++
			}
		}
	}
	return counts
}

// slots bounds how many of the members the nodes take.
func slots(all []Node, used []int, want []int) int {
	fit := 0
	for c, n := range want {
		room := 0
		for _, u := range used {
			room += all[u].Slots[c]
		}
		fit += min(n, room)
	}
	return fit
}

// enough reports whether the nodes take all members by their bounds.
func enough(all []Node, used []int, want []int) bool { return slots(all, used, want) == sum(want) }

// fewest tries all sets of narrowest domains and returns the least counts by level, the widest level first; nil if
// no set takes all members. Required levels may only be counted once.
func fewest(all []Node, required int, want []int) []int {
	var domains [][]int
	index := map[string]int{}
	for i, n := range all {
		key := fmt.Sprintf("%q", n.Path)
		d, known := index[key]
		if !known {
			d = len(domains)
			index[key] = d
			domains = append(domains, nil)
		}
		domains[d] = append(domains[d], i)
	}
	var best []int
	for set := range 1 << len(domains) {
		var used []int
		for d, members := range domains {
			if set&(1<<d) != 0 {
				used = append(used, members...)
			}
		}
		if !enough(all, used, want) {
			continue
		}
		counts := spans(all, used)
		if required > 0 && counts[required-1] > 1 {
			continue
		}
		if best == nil || slices.Compare(counts, best) < 0 {
			best = counts
		}
	}
	return best
}

// usable returns the nodes with slots of all sets.
func usable(all []Node, a Arrangement) []int {
	var out []int
	for _, set := range a {
		for _, n := range set {
			if sum(all[n].Slots) > 0 {
				out = append(out, n)
			}
		}
	}
	return out
}

// smallTree draws up to ten narrowest domains of one to two nodes on three levels.
func smallTree(t *rapid.T, classes int) []Node {
	var out []Node
	for range rapid.IntRange(1, 10).Draw(t, "domains") {
		path := []string{
			rapid.SampledFrom([]string{"b1", "b2", "b3"}).Draw(t, "block"),
			rapid.SampledFrom([]string{"r1", "r2", "r3"}).Draw(t, "rack"),
			rapid.SampledFrom([]string{"c1", "c2"}).Draw(t, "clique"),
		}
		n := Node{Path: path}
		for range classes {
			n.Slots = append(n.Slots, rapid.IntRange(0, 8).Draw(t, "slots"))
		}
		out = append(out, n)
	}
	return out
}

func drawWant(t *rapid.T, classes int) []int {
	want := []int{rapid.IntRange(1, 40).Draw(t, "want")}
	for range classes - 1 {
		want = append(want, rapid.IntRange(1, 10).Draw(t, "want"))
	}
	return want
}

// On trees that can be searched completely the first arrangement uses the fewest domains, of the widest level first,
// and beside those of members that have a place.
func TestFewestDomainsOfEachLevel(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		classes int
		places  bool
	}{{"one class", 1, false}, {"two classes", 2, false}, {"some have a place", 1, true}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				all, want, required := smallTree(t, tc.classes), drawWant(t, tc.classes), 0
				demand := Demand{Want: want, Need: 1}
				if tc.places {
					for range rapid.IntRange(1, 3).Draw(t, "places") {
						all[rapid.IntRange(0, len(all)-1).Draw(t, "place")].Held++
					}
				} else {
					required, demand.Need = rapid.IntRange(0, 3).Draw(t, "required"), sum(want)
				}
				best, arrangements := fewest(all, required, want), Arrange(all, required, demand)
				if best == nil {
					if len(arrangements) != 1 && tc.classes == 1 && !tc.places {
						t.Errorf("%d arrangements of members that do not fit, want one", len(arrangements))
					}
					return
				}
				if got := spans(all, usable(all, arrangements[0])); slices.Compare(got[required:], best[required:]) != 0 {
					t.Errorf("%v domains by level, want %v", got, best)
				}
			})
		})
	}
}

// On trees of any size and form, arrangements keep what is promised of all of them.
func TestWhatAllArrangementsHaveInCommon(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"", "a", "b", "ab", "c", "d", "e"})
		classes := rapid.IntRange(1, 3).Draw(t, "classes")
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Node {
			n := Node{Path: []string{name.Draw(t, "block"), name.Draw(t, "rack"), name.Draw(t, "clique")},
				Slots: make([]int, classes)}
			for c := range n.Slots {
				n.Slots[c] = rapid.IntRange(0, 5).Draw(t, "slots")
			}
			if rapid.IntRange(0, 9).Draw(t, "holds") == 0 {
				n.Held = 1
			}
			return n
		}), 1, 60).Draw(t, "nodes")
		required := rapid.IntRange(0, 3).Draw(t, "required")
		want := drawWant(t, classes)
		need := rapid.IntRange(0, sum(want)).Draw(t, "need")
		arrangements := Arrange(all, required, Demand{Want: want, Need: need})

		whole := map[string]bool{}
		full := true
		for i, a := range arrangements {
			var listed []int
			for _, set := range a {
				if len(set) == 0 {
					t.Fatalf("arrangement %d has a set without nodes", i)
				}
				listed = append(listed, set...)
			}
			root := fmt.Sprintf("%q", all[listed[0]].Path[:required])
			for _, n := range listed {
				if fmt.Sprintf("%q", all[n].Path[:required]) != root || slices.Contains(all[n].Path[:required], "") {
					t.Fatalf("arrangement %d splits a required level: %v", i, all[n].Path)
				}
			}
			if sorted := slices.Compact(slices.Sorted(slices.Values(listed))); len(sorted) != len(listed) {
				t.Fatalf("arrangement %d lists a node twice", i)
			}
			inRoot := 0
			for _, n := range all {
				if fmt.Sprintf("%q", n.Path[:required]) == root {
					inRoot++
				}
			}
			if len(listed) == inRoot {
				whole[root] = true
			}
			if slots(all, listed, want) < need && len(arrangements) > 1 {
				t.Fatalf("arrangement %d of %d is too small for the minimum", i, len(arrangements))
			}
			if enough(all, listed, want) && !full {
				t.Fatalf("arrangement %d is for all, those before it are not", i)
			}
			full = enough(all, listed, want)
		}
		pinned := slices.ContainsFunc(all, func(n Node) bool { return n.Held > 0 && !slices.Contains(n.Path[:required], "") })
		byRoot := map[string][]int{}
		for _, n := range all {
			if slices.Contains(n.Path[:required], "") {
				continue
			}
			root := fmt.Sprintf("%q", n.Path[:required])
			if byRoot[root] == nil {
				byRoot[root] = make([]int, classes)
			}
			for c := range n.Slots {
				byRoot[root][c] += n.Slots[c]
			}
		}
		for root, s := range byRoot {
			fits := 0
			for c := range want {
				fits += min(want[c], s[c])
			}
			if fits >= need && !whole[root] && (!pinned || required == 0) {
				t.Fatalf("%s may hold %d members and is not tried whole", root, fits)
			}
		}
	})
}
