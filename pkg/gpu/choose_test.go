package gpu

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		inv  *Inventory
		req  *Request
		want []int
	}{
		{"a share goes to the fullest GPU with room", node(3, shared, take(200, 500, 800)), share(300), []int{1}},
		{"an exact fit is the best fit", node(3, shared, take(0, 700, 500)), share(300), []int{1}},
		{"an unhealthy GPU is passed over", node(2, shared, func(i *Inventory) { i.Devices[0].Unhealthy = true }), share(300),
			[]int{1}},
		{"shares of one pod go to different GPUs", node(3, shared, take(500)),
			with(share(400), func(r *Request) { r.Count = 2 }), []int{0, 1}},
		{"whole GPUs take the linked pair", node(4, shared, take(0, 1), func(i *Inventory) { i.Links = pairsOf(t, 4) }),
			whole(2), []int{2, 3}},
		{"without links the lowest indices", node(4, shared, take(1000)), whole(2), []int{1, 2}},
		{"a required pair that is broken is not replaced",
			node(4, shared, take(1, 0, 1), func(i *Inventory) { i.Links = pairsOf(t, 4) }),
			with(whole(2), func(r *Request) { r.Interconnect = InterconnectRequired }), nil},
		{"nothing when too few are free", node(2, shared, take(1)), whole(2), nil},
		{"nothing for a pod without GPUs", node(2, shared), &Request{}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, _, ok := Choose(tc.inv, tc.req)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != (tc.want != nil) {
				t.Errorf("Choose, ok = %v (-want +got):\n%s", ok, diff)
			}
		})
	}
}

// TestConservation plays any sequence of takes and gives: what is free and what is held always make up the whole, no
// device is ever overbooked, and what was refused changed nothing.
func TestConservation(t *testing.T) {
	t.Parallel()
	type held struct {
		devices []int
		share   Share
	}
	rapid.Check(t, func(t *rapid.T) {
		inv := node(rapid.IntRange(1, 8).Draw(t, "gpus"), shared, limited(rapid.IntRange(0, 3).Draw(t, "tasks")))
		var pods []held
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				r := &Request{Count: rapid.IntRange(1, 9).Draw(t, "count"), Milli: rapid.IntRange(1, WholeMilli).Draw(t, "milli")}
				devices, s, ok := Choose(inv, r)
				if fits := Fit(inv, r).Cause == Fits; fits != ok {
					t.Fatalf("Fit says %v, Choose says %v", fits, ok)
				}
				before := inv.Clone()
				if !ok {
					return
				}
				if len(devices) != r.Count || !slices.IsSorted(devices) || !inv.Take(devices, s) {
					t.Fatalf("chose %v for %d GPUs", devices, r.Count)
				}
				if cmp.Equal(before, inv, cmp.AllowUnexported(Inventory{}, Links{})) {
					t.Fatal("taking a share changed nothing")
				}
				pods = append(pods, held{devices, s})
			},
			"give": func(t *rapid.T) {
				if len(pods) == 0 {
					t.Skip("no pods")
				}
				i := rapid.IntRange(0, len(pods)-1).Draw(t, "pod")
				inv.Give(pods[i].devices, pods[i].share)
				pods = slices.Delete(pods, i, i+1)
			},
			"": func(t *rapid.T) {
				for i, d := range inv.Devices {
					milli, mem, tasks := d.FreeMilli, d.FreeMemMiB, 0
					for _, p := range pods {
						if slices.Contains(p.devices, i) {
							milli += p.share.Milli
							mem += p.share.MemMiB
							tasks++
						}
					}
					if milli != WholeMilli || mem != inv.MemMiB || d.FreeMilli < 0 || d.FreeMemMiB < 0 {
						t.Fatalf("device %d: free %+v, free and held %d milli, %d MiB", i, d, milli, mem)
					}
					if d.TaskLimit > 0 && (tasks > d.TaskLimit || d.Tasks != tasks) {
						t.Fatalf("device %d: %+v with %d containers", i, d, tasks)
					}
				}
			},
		})
	})
}

func TestTakeRefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	for name, devices := range map[string][]int{
		"a repeated device": {0, 0}, "a negative index": {-1}, "an index too high": {2},
		"a full device among free ones": {0, 1},
	} {
		inv := node(2, take(0, 600))
		before := inv.Clone()
		if inv.Take(devices, Share{Milli: 500, MemMiB: 1}) {
			t.Errorf("%s was taken", name)
		}
		if diff := cmp.Diff(before.Devices, inv.Devices); diff != "" {
			t.Errorf("%s changed the inventory:\n%s", name, diff)
		}
	}
}

func TestCloneSharesNothingThatChanges(t *testing.T) {
	t.Parallel()
	inv := node(2, func(i *Inventory) {
		i.Slices = []SliceCount{{Resource: "nvidia.com/mig-1g.5gb", Count: 2,
			Milli: 142}}
	})
	c := inv.Clone()
	c.Take([]int{0}, Share{Milli: 1000})
	c.Devices[1].Unhealthy = true
	c.Slices[0].Count = 0
	if diff := cmp.Diff(node(2).Devices, inv.Devices); diff != "" || inv.Slices[0].Count != 2 {
		t.Errorf("scribbling on a clone changed the original: %s %v", diff, inv.Slices)
	}
}
