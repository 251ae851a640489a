package fleet

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gpu/mix"
)

func t4(gpus int) Node { return Node{Model: "Tesla-T4", GPUs: gpus, MemMiB: 15360} }

func h100(clique string) Node {
	return Node{Model: "NVIDIA-H100-80GB-HBM3", GPUs: 8, MemMiB: 81559, Linked: true, Clique: clique}
}

func TestSumsFollowTheNodes(t *testing.T) {
	t.Parallel()
	f := New()
	f.Set("a", t4(4))
	f.Set("b", h100("rack.1"))
	f.Set("c", h100("rack.1"))
	f.Set("c", h100("rack.2"))
	f.Set("leaving", t4(16))
	f.Remove("leaving")
	f.Remove("leaving")
	want := mix.Capacity{
		"Tesla-T4":              {GPUs: 4, MemMiB: 15360},
		"NVIDIA-H100-80GB-HBM3": {GPUs: 16, MemMiB: 81559, Linked: true},
	}
	if diff := cmp.Diff(want, f.Capacity()); diff != "" {
		t.Errorf("capacity (-want +got):\n%s", diff)
	}
	if got := f.Largest(); got != 8 {
		t.Errorf("the largest node has %d GPUs, want 8", got)
	}
	for holds, want := range map[int]int{0: 15360, 15360: 15360, 15361: 81559, 90000: 0} {
		if got := f.LeastMemMiB(holds); got != want {
			t.Errorf("the least memory that holds %d MiB is %d, want %d", holds, got, want)
		}
	}
	byClique, total := f.ByClique([]string{"a", "b", "b", "c", "unknown"})
	if diff := cmp.Diff(map[string]int{"": 1, "rack.1": 2, "rack.2": 1}, byClique); diff != "" || total != 4 {
		t.Errorf("%d in all, want 4; by clique (-want +got):\n%s", total, diff)
	}
	if f.Cliques() != 2 {
		t.Errorf("%d nodes are in NVLink domains, want 2", f.Cliques())
	}
}

func TestAChangeIsReportedOnceItMatters(t *testing.T) {
	t.Parallel()
	f := New()
	for _, tc := range []struct {
		what   string
		change func()
		want   bool
	}{
		{"no node is there", func() {}, false},
		{"a hundred GPUs come", func() {
			for i := range 25 {
				f.Set(fmt.Sprint("n", i), t4(4))
			}
		}, true},
		{"nothing changes", func() {}, false},
		{"one GPU in a hundred is lost", func() { f.Set("n0", t4(3)) }, false},
		{"the third is lost since", func() { f.Set("n0", t4(1)) }, true},
		{"a model comes with no more GPUs than went", func() { f.Set("n1", Node{Model: "NVIDIA-A10", GPUs: 4}) }, true},
	} {
		if tc.change(); f.Changed() != tc.want {
			t.Errorf("when %s, changed = %v, want %v", tc.what, !tc.want, tc.want)
		}
	}
}

// TestTheSumsAreThoseOfAFleetThatNeverHadTheOtherNodes changes nodes in any order, and compares the fleet with one that
// was made of what is left.
func TestTheSumsAreThoseOfAFleetThatNeverHadTheOtherNodes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f, left := New(), map[string]Node{}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "node")
			if rapid.Bool().Draw(t, "goes") {
				f.Remove(name)
				delete(left, name)
				continue
			}
			model := rapid.SampledFrom([]string{"Tesla-T4", "NVIDIA-A10"}).Draw(t, "model")
			left[name] = Node{
				Model: model, GPUs: rapid.IntRange(0, 8).Draw(t, "GPUs"), MemMiB: len(model),
				Clique: rapid.SampledFrom([]string{"", "rack.1"}).Draw(t, "clique"),
			}
			f.Set(name, left[name])
		}
		fresh := New()
		for name, n := range left {
			fresh.Set(name, n)
		}
		if diff := cmp.Diff(fresh, f, cmp.AllowUnexported(Fleet{})); diff != "" {
			t.Fatalf("%v (-fresh +changed):\n%s", maps.Collect(maps.All(left)), diff)
		}
	})
}
