package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/test/harness/require"
)

func TestFitGranted(t *testing.T) {
	t.Parallel()
	whole := func(device int, model string, memMiB int) Grant {
		return Grant{Device: device, Share: Share{Milli: WholeMilli, MemMiB: memMiB}, Model: model, MemMiB: memMiB}
	}
	nvlink, err := ParseLink("NV4")
	require.NoError(t, err)
	links, err := NewLinks(4, []Pair{{0, 1, nvlink}})
	require.NoError(t, err)
	inv := &Inventory{Mode: ModeDRA, Replicas: 1, Devices: NewDevices(4, 80<<10), Links: links}
	leaving := inv.Clone()
	leaving.Leaving = "karpenter.sh/disrupted"
	for name, tc := range map[string]struct {
		inv     *Inventory
		request Request
		given   []Grant
		want    Cause
	}{
		"what is asked of nothing": {inv, Request{Count: 1, Milli: WholeMilli},
			[]Grant{whole(2, "T4", 15<<10)}, Fits},
		"no GPU is given":    {leaving, Request{Models: []string{"A100"}}, nil, Fits},
		"a node that leaves": {leaving, Request{}, []Grant{whole(2, "T4", 15<<10)}, NodeLeaving},
		"the model counts, not the node's": {inv, Request{Models: []string{"a100"}},
			[]Grant{whole(2, "A100", 80<<10)}, Fits},
		"one of another model": {inv, Request{Models: []string{"A100"}},
			[]Grant{whole(0, "A100", 80<<10), whole(2, "T4", 15<<10)}, WrongModel},
		"one with too little memory": {inv, Request{MinMemMiB: 40 << 10},
			[]Grant{whole(0, "A100", 80<<10), whole(2, "A100", 20<<10)}, GPUMemory},
		"slices of no GPU are not judged by models": {inv, Request{Models: []string{"A100"}}, []Grant{{Slice: "1g"}}, Fits},
		"a linked pair": {inv, Request{Interconnect: InterconnectRequired},
			[]Grant{whole(0, "", 0), whole(1, "", 0)}, Fits},
		"a pair that is not linked": {inv, Request{Interconnect: InterconnectRequired},
			[]Grant{whole(0, "", 0), whole(2, "", 0)}, NotLinked},
	} {
		if got := FitGranted(tc.inv, &tc.request, tc.given); got.Cause != tc.want {
			t.Errorf("%s: %+v, want cause %d", name, got, tc.want)
		}
	}
}

// A share that is given on an empty GPU strands more than one on a GPU that is in use already, whichever best-fit would
// choose.
func TestChangeFollowsWhatIsGiven(t *testing.T) {
	t.Parallel()
	inv := &Inventory{Mode: ModeDRA, Replicas: 1, IndexKnown: true, InUse: true, Devices: NewDevices(2, 0),
		CPUMilli: 16_000, FreeCPUMilli: 16_000}
	inv.Occupy([]int{1}, Share{Milli: 500})
	wholes := mixOf(100, Shape{CPUMilli: 1000, Count: 1, Milli: WholeMilli})
	judge := NewJudge(DefaultWeights(), false, NewDemand(wholes, nil, 0), &Supply{}, &Request{})
	request := &Request{Count: 1, Milli: 250, CPUMilli: 1000}
	given := func(device int) Change {
		return judge.Change(inv, request,
			Placement{Allocated: true, Granted: []Grant{{Device: device, Share: Share{Milli: 250}}}})
	}
	used, empty := given(1), given(0)
	if diff := cmp.Diff(judge.Change(inv, request, Placement{}), used); diff != "" {
		t.Errorf("what best-fit chooses is worth something else when it is given (-chosen +given):\n%s", diff)
	}
	if less, more := judge.Price(&used).Sum(), judge.Price(&empty).Sum(); less >= more {
		t.Errorf("the GPU in use wastes %v, the empty one %v", less, more)
	}
	inv.Devices[0].Unhealthy = true
	if faulty := given(0); faulty.Fixed.Faulty != faultyMilli || given(1).Fixed.Faulty != 0 {
		t.Errorf("a faulty GPU is charged %v", faulty.Fixed.Faulty)
	}
}
