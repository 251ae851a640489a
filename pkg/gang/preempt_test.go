package gang

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var g2 = ID{Namespace: "ns", Name: "two"}

func victim(name, node string, priority int32, group ID) Victim {
	return Victim{UID: UID(name), Node: node, Priority: priority, Started: t0, Group: group}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	gang := func(n int) []Victim {
		var out []Victim
		for i := range n {
			out = append(out, victim(fmt.Sprintf("m%d", i), "n", 1, g1))
		}
		return out
	}
	for _, tc := range []struct {
		name               string
		victims            []Victim
		minMember, settled int
		want               []string
	}{
		{"single pods go one by one", []Victim{victim("a", "n", 1, ID{}), victim("b", "n", 1, ID{})}, 0, 0, []string{"a", "b"}},
		{"pods of the same priority are safe", []Victim{victim("a", "n", 10, ID{})}, 0, 0, nil},
		{"a gang at its minimum goes whole", gang(3), 3, 3, []string{"m0+m1+m2 whole"}},
		{"surplus goes one by one, the rest whole", gang(4), 2, 4, []string{"m0", "m1", "m2+m3 whole"}},
		{"what is left of a degraded gang goes whole", gang(2), 3, 2, []string{"m0+m1 whole"}},
		{"a gang with an important member loses its surplus only", append(gang(3), victim("x", "n", 10, g1)), 3, 4, []string{"m0"}},
		{"a gang of which some have finished is not thrown away", gang(2), 3, 3, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, u := range Units(tc.victims, 10, func(ID) (int, int) { return tc.minMember, tc.settled }) {
				text := ""
				for i, v := range u.Victims {
					if i > 0 {
						text += "+"
					}
					text += string(v.UID)
				}
				if u.Whole {
					text += " whole"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("units (-want +got):\n%s", diff)
			}
		})
	}
}

// A gang is never left between one member and its minimum, whatever is chosen and spared.
func TestSpareNeverLeavesAGangBelowItsMinimum(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := map[ID]int{g1: rapid.IntRange(1, 6).Draw(t, "size1"), g2: rapid.IntRange(1, 6).Draw(t, "size2")}
		minimum := map[ID]int{g1: rapid.IntRange(1, 6).Draw(t, "min1"), g2: rapid.IntRange(1, 6).Draw(t, "min2")}
		var victims []Victim
		for _, id := range []ID{g1, g2} {
			for i := range size[id] {
				victims = append(victims, victim(fmt.Sprintf("%s%d", id.Name, i), fmt.Sprintf("n%d", i), int32(rapid.IntRange(1, 3).Draw(t, "priority")), id))
			}
		}
		units := Units(victims, 10, func(id ID) (int, int) { return minimum[id], size[id] })
		all := map[int]bool{}
		for i := range units {
			all[i] = true
		}
		need := rapid.IntRange(0, len(victims)).Draw(t, "need")
		count := func(chosen map[int]bool) int {
			n := 0
			for i := range chosen {
				n += len(units[i].Victims)
			}
			return n
		}
		chosen := Spare(units, all, func(c map[int]bool) bool { return count(c) >= need })
		if count(chosen) < need {
			t.Fatalf("spared too much: %d pods go, %d are needed", count(chosen), need)
		}
		gone := map[ID]int{}
		for i := range chosen {
			gone[units[i].Group] += len(units[i].Victims)
		}
		for id, n := range gone {
			if left := size[id] - n; left > 0 && left < minimum[id] {
				t.Fatalf("gang %s is left with %d of %d", id, left, minimum[id])
			}
		}
	})
}

func TestSparePrefersFewUnits(t *testing.T) {
	t.Parallel()
	units := []Unit{
		{Victims: []Victim{victim("a", "n0", 1, ID{})}, Priority: 1},
		{Victims: []Victim{victim("b", "n1", 1, ID{})}, Priority: 1},
		{Victims: []Victim{victim("c", "n2", 1, g1), victim("d", "n3", 1, g1)}, Priority: 1, Whole: true, Group: g1},
	}
	got := Spare(units, map[int]bool{0: true, 1: true, 2: true}, func(c map[int]bool) bool {
		n := 0
		for i := range c {
			n += len(units[i].Victims)
		}
		return n >= 2
	})
	if diff := cmp.Diff(map[int]bool{2: true}, got); diff != "" {
		t.Errorf("chosen units (-want +got):\n%s", diff)
	}
}
