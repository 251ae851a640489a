package ranks

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSegmentsGetDomains(t *testing.T) {
	of := func(want ...int) Segment { return Segment{Want: want, Domain: None} }
	for _, tc := range []struct {
		name     string
		slots    [][]int
		segments []Segment
		need     int
		want     []int
	}{
		{"neighbors share a domain", [][]int{{8}, {8}}, []Segment{of(4), of(4), of(4), of(4)}, 16, []int{0, 0, 1, 1}},
		{"none is divided", [][]int{{5}, {5}, {3}}, []Segment{of(4), of(4), of(3)}, 11, []int{0, 1, 2}},
		{"what does not fit has no domain", [][]int{{5}, {2}}, []Segment{of(4), of(4)}, 4, []int{0, None}},
		{"the minimum may need a part of a segment", [][]int{{5}, {2}}, []Segment{of(4), of(4)}, 6, []int{0, 1}},
		{"one that has members stays with them", [][]int{{8}, {4}}, []Segment{{Want: []int{1}, Domain: 1}, of(4)}, 5,
			[]int{1, 0}},
		{"members that are to come keep their room", [][]int{{3}, {3}},
			[]Segment{{Want: []int{1}, Coming: 1, Domain: None}, {Want: []int{1}, Coming: 1, Domain: None}}, 2, []int{0, 1}},
		{"the last may be short", [][]int{{4}, {2}}, []Segment{of(4), {Want: []int{2}, Coming: 2, Domain: None}}, 6,
			[]int{0, 1}},
		{"each class counts", [][]int{{1, 8}, {0, 8}}, []Segment{of(1, 3), of(0, 4), of(0, 4)}, 12, []int{0, 0, 1}},
		{"no domains", nil, []Segment{of(1)}, 1, []int{None}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Fill(tc.slots, tc.segments, tc.need)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// most is how many segments get a domain whole at best, found by trying all.
func most(slots [][]int, segments []Segment) int {
	if len(segments) == 0 {
		return 0
	}
	best := most(slots, segments[1:])
	for domain := range slots {
		if fits(segments[0].Want, slots[domain]) < sum(segments[0].Want) {
			continue
		}
		left := slices.Clone(slots)
		left[domain] = slices.Clone(slots[domain])
		for class, n := range segments[0].Want {
			left[domain][class] -= n
		}
		best = max(best, 1+most(left, segments[1:]))
	}
	return best
}

func TestAsManySegmentsAreWholeAsCanBe(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	const cases = 1000
	exact := 0
	for range cases {
		size := 2 + random.IntN(4)
		slots := make([][]int, 1+random.IntN(4))
		for i := range slots {
			slots[i] = []int{random.IntN(2), random.IntN(3*size + 1)}
		}
		// A leader has a class of its own, and the last segment may be short.
		segments := []Segment{{Want: []int{1, size - 1}, Domain: None}}
		for range random.IntN(4) {
			segments = append(segments, Segment{Want: []int{0, size}, Domain: None})
		}
		segments = append(segments, Segment{Want: []int{0, 1 + random.IntN(size)}, Domain: None})
		whole := 0
		for _, domain := range Fill(slots, segments, 0) {
			if domain != None {
				whole++
			}
		}
		best := most(slots, segments)
		if whole > best {
			t.Fatalf("%d segments of %v are whole in %v, which has room for %d", whole, segments, slots, best)
		}
		if whole == best {
			exact++
		}
	}
	t.Logf("as many as can be in %d of %d", exact, cases)
	if exact < cases*99/100 {
		t.Errorf("as many segments are whole as can be in %d of %d cases", exact, cases)
	}
}
