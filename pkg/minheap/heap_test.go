package minheap

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestValuesComeInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		initial := rapid.SliceOf(rapid.IntRange(0, 20)).Draw(t, "initial")
		pushed := rapid.SliceOf(rapid.IntRange(0, 20)).Draw(t, "pushed")
		h := Heap[int]{slices.Clone(initial), cmp.Compare[int]}
		h.Init()
		for _, v := range pushed {
			h.Push(v)
		}
		want := slices.Sorted(slices.Values(slices.Concat(initial, pushed)))
		if h.Len() > 0 && rapid.Bool().Draw(t, "change the first") {
			h.Items[0], want[0] = 30, 30
			h.Fix()
			slices.Sort(want)
		}
		var got []int
		for h.Len() > 0 {
			got = append(got, h.Pop())
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("order (-want +got):\n%s", diff)
		}
	})
}
