package topology

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// threeLevels are the distances of a node, a rack, a zone and anything beyond.
var threeLevels = Distances{1, 10, 100, 1000}

// between is the distance between two places.
func between(d Distances, a, b *Place) int64 {
	tally := NewTally()
	tally.Add(b, 1)
	return tally.Mean(a, d)
}

func TestDistanceIsThatOfTheNarrowestSharedDomain(t *testing.T) {
	t.Parallel()
	at := func(node string, path ...string) *Place { return NewPlace(node, path) }
	here := at("a", "z1", "r1")
	for _, test := range []struct {
		name string
		a, b *Place
		want int64
	}{
		{"a node is next to itself", here, at("a", "z1", "r1"), 1},
		{"two nodes of a rack", here, at("b", "z1", "r1"), 10},
		{"two racks of a zone", here, at("b", "z1", "r2"), 100},
		{"two zones", here, at("b", "z2", "r2"), 1000},
		{"racks of the same name in two zones are two racks", here, at("b", "z2", "r1"), 1000},
		{"nodes without labels share nothing", at("a", "", ""), at("b", "", ""), 1000},
		{"a node without labels is next to itself all the same", at("a", "", ""), at("a", "", ""), 1},
		{"nodes that tell their rack alone", at("a", "", "r1"), at("b", "", "r1"), 10},
		{"a node that tells its zone alone", here, at("b", "z1", ""), 100},
		{"a zone and a rack of one name are not the same", at("a", "x", ""), at("b", "", "x"), 1000},
	} {
		if got := between(threeLevels, test.a, test.b); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
		if got := between(threeLevels, test.b, test.a); got != test.want {
			t.Errorf("%s, the other way: got %d, want %d", test.name, got, test.want)
		}
	}
}

// TestTallyIsTheSumOverThePeers compares the sums by level with sums over peers, on places with any labels missing.
func TestTallyIsTheSumOverThePeers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		levels := rapid.IntRange(0, 4).Draw(t, "levels")
		place := rapid.Custom(func(t *rapid.T) *Place {
			path := make([]string, levels)
			for i := range path {
				path[i] = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "domain")
			}
			return NewPlace(fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "node"), path), path)
		})
		steps := rapid.SliceOfN(rapid.Int64Range(0, 1000), levels+2, levels+2).Draw(t, "steps")
		var d Distances
		var at int64
		for _, step := range steps {
			at += step
			d = append(d, at)
		}
		peers := rapid.SliceOfN(place, 1, 20).Draw(t, "peers")
		here := place.Draw(t, "here")
		tally := NewTally()
		var sum, total int64
		split := make([]int64, levels+2)
		for i, peer := range peers {
			traffic := int64(i%3 + 1)
			tally.Add(peer, traffic)
			distance := between(d, here, peer)
			sum, total = sum+traffic*distance, total+traffic
			split[slices.Index(d, distance)] += traffic
		}
		if got, want := tally.Mean(here, d), (2*sum+total)/(2*total); got != want {
			t.Fatalf("the mean distance is %d, want %d", got, want)
		}
		if !slices.IsSorted(d) || len(slices.Compact(slices.Clone(d))) != len(d) {
			return // equal distances of two levels cannot be told apart here
		}
		if diff := cmp.Diff(split, tally.Split(here)); diff != "" {
			t.Fatalf("traffic by level (-want +got):\n%s", diff)
		}
		if tally.Total() != total {
			t.Fatalf("the traffic is %d, want %d", tally.Total(), total)
		}
	})
}

func TestNearnessKeepsTheOrderOfDistances(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                      string
		distance, shortest, slack int64
		want                      int64
	}{
		{"the nearest", 500, 500, 1, 100},
		{"one a little farther is not as good", 1_000_001, 1_000_000, 1, 99},
		{"twice as far", 20_000, 10_000, 0, 50},
		{"a thousand times as far", 10_000_000, 10_000, 0, 0},
		{"no distance at all", 0, 0, 1000, 100},
		{"as far as the slack from nothing", 1000, 0, 1000, 50},
		{"distances near the largest number", 1 << 62, 1 << 61, 1000, 50},
	} {
		if got := Nearness(test.distance, test.shortest, test.slack); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
	if got := NewTally().Mean(NewPlace("a", []string{"z", "r"}), threeLevels); got != 0 {
		t.Errorf("without peers the mean distance is %d, want 0", got)
	}
}
