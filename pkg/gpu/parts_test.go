package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// cut is a node whose GPUs are offered as slices, that many in sum.
func cut(offered int) func(*Inventory) {
	return func(inv *Inventory) {
		seventh, _ := ParseProfile("1g.5gb", "", 0)
		inv.SlicedGPUs, inv.Devices = len(inv.Devices), nil
		inv.Slices = []SliceCount{{Resource: inv.Resource, Count: offered, Total: offered, Milli: 142, Profile: seventh}}
	}
}

func TestPartsStandInForGPUsOnlyIfThePodSaysSo(t *testing.T) {
	t.Parallel()
	linked := func(r *Request) { r.Interconnect = InterconnectRequired }
	model := func(r *Request) { r.Models = []string{"Tesla-T4"} }
	memory := func(r *Request) { r.MinMemMiB = 100 << 10 }
	for name, tc := range map[string]struct {
		request *Request
		want    Reason
	}{
		"one":                       {whole(1), Reason{}},
		"one with NVLink":           {with(whole(1), linked), Reason{}},
		"two":                       {whole(2), Reason{Cause: Replicas, Need: 2}},
		"all":                       {whole(8), Reason{Cause: Replicas, Need: 8}},
		"two with NVLink":           {with(whole(2), linked), Reason{Cause: NotLinked, Need: 2}},
		"more than the node offers": {whole(9), Reason{Cause: TooFewGPUs, Need: 9, Have: 8}},
		"two of another model":      {with(whole(2), model), Reason{Cause: WrongModel, Detail: "NVIDIA-A10"}},
		"two of more memory":        {with(whole(2), memory), Reason{Cause: GPUMemory, Need: 100 << 10}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kind, inv := range map[string]*Inventory{"time slices": node(2, sliced(8)), "slices": node(2, cut(8))} {
				want := tc.want
				switch want.Cause {
				case GPUMemory:
					want.Have = map[string]int{"time slices": 24 << 10, "slices": 5 << 10}[kind]
				case Replicas:
					want.Detail = map[string]string{"slices": inv.Resource}[kind]
				}
				if diff := cmp.Diff(want, Fit(inv, tc.request)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", kind, diff)
				}
				if want.Cause == Replicas {
					want = Reason{}
				}
				shared := *tc.request
				shared.Sharing = SharingAllowed
				if diff := cmp.Diff(want, Fit(inv, &shared)); diff != "" {
					t.Errorf("%s, shared (-want +got):\n%s", kind, diff)
				}
			}
		})
	}
}

func TestTimeSlicesOfAnyNumberAddUpToTheirGPUs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		gpus, replicas := rapid.IntRange(1, 8).Draw(t, "GPUs"), rapid.IntRange(2, 1<<20).Draw(t, "replicas")
		inv := node(gpus)
		inv.Replicas, inv.FreeReplicas = replicas, gpus*replicas
		if free := inv.freeVector(nil); len(free) != gpus || sum(free) != gpus*WholeMilli {
			t.Fatalf("free of %d GPUs: %v", gpus, free)
		}
		count := rapid.IntRange(1, inv.FreeReplicas).Draw(t, "count")
		left, used := takeVector(inv.freeVector(nil), inv, whole(count))
		if exact := count * WholeMilli / replicas; used < exact || used > exact+1 || sum(left)+used != gpus*WholeMilli {
			t.Fatalf("%d of %d slices take %d milli-GPU, want %d, and leave %v", count, inv.FreeReplicas, used, exact, left)
		}
		slice := SliceCount{Resource: "mig", Total: gpus * replicas, Milli: 142, Replicas: replicas}
		slice.Count = slice.Total - count
		cut := &Inventory{Slices: []SliceCount{slice}}
		if got, exact := cut.FreeSlicedMilli(), slice.Count*142/replicas; got != exact {
			t.Fatalf("%d of %d time slices of slices are %d milli-GPU, want %d", slice.Count, slice.Total, got, exact)
		}
		if got := cut.SlicedMilli(&Request{Slices: []SliceCount{{Resource: "mig", Count: 1}}}); got < 1 {
			t.Fatalf("one slice counts as %d milli-GPU", got)
		}
	})
}
