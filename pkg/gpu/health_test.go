package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithFaulty(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		inv       *Inventory
		at        []int
		elsewhere int
		unhealthy []int
	}{
		{"the index is believed where the scheduler owns it", node(3, shared), []int{1}, 0, []int{1}},
		{"an index that does not exist is nobody", node(3, shared), []int{7, -1}, 0, nil},
		{"a GPU of unknown index is taken for the freest", node(3, shared, take(500, 0, 300)), nil, 1, []int{1}},
		{"where the kubelet picks only the number counts", node(3, take(1000)), []int{0}, 0, []int{1}},
		{"what the node took out itself is not counted again", node(3, func(i *Inventory) { i.Devices[2].Unhealthy = true }),
			nil, 1, []int{2}},
		{"more faults than GPUs leave none", node(2), nil, 5, []int{0, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			before := tc.inv.Clone()
			var got []int
			for i, d := range tc.inv.WithFaulty(tc.at, tc.elsewhere).Devices {
				if d.Unhealthy {
					got = append(got, i)
				}
			}
			if diff := cmp.Diff(tc.unhealthy, got); diff != "" {
				t.Errorf("unhealthy devices (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before.Devices, tc.inv.Devices); diff != "" {
				t.Errorf("the original changed:\n%s", diff)
			}
		})
	}
	if got := node(2, sliced(4), func(i *Inventory) { i.Devices[1].Unhealthy = true }).WithFaulty(nil,
		1).FreeReplicas; got != 4 {
		t.Errorf("free replicas = %d, want 4: the node has taken the faulty GPU out already", got)
	}
	if got := node(2, sliced(7)).WithFaulty([]int{0}, 0).FreeReplicas; got != 3 {
		t.Errorf("free replicas = %d, want 3: a faulty GPU takes its four with it", got)
	}
}
