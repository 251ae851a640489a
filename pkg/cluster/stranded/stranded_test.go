package stranded

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gpu"
)

func devices(free ...int) []gpu.Device {
	list := make([]gpu.Device, len(free))
	for i, f := range free {
		list[i] = gpu.Device{FreeMilli: max(f, 0), Unhealthy: f < 0}
	}
	return list
}

func whole(count int, cpu int64) Need {
	return Need{Count: count, Milli: gpu.WholeMilli, CPUMilli: cpu, MemoryBytes: 1}
}

func share(milli int) Need { return Need{Count: 1, Milli: milli, CPUMilli: 1, MemoryBytes: 1} }

func TestWhatNoPodCouldUse(t *testing.T) {
	t.Parallel()
	chooser := &v1.Pod{Spec: v1.PodSpec{NodeSelector: map[string]string{"zone": "b"}}}
	tainted := &v1.Node{Spec: v1.NodeSpec{Taints: []v1.Taint{{Key: "team", Value: "a", Effect: v1.TaintEffectNoSchedule}}}}
	tolerant := &v1.Pod{Spec: v1.PodSpec{Tolerations: []v1.Toleration{{Key: "team", Operator: v1.TolerationOpExists}}}}
	inB := &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"zone": "b"}}}
	tests := map[string]struct {
		needs  []Need
		of     *v1.Pod
		on     *v1.Node
		room   Headroom
		usable []bool
		milli  int64
	}{
		"without pods nothing is stranded": {room: Headroom{Devices: devices(1000, 300, 0, -1)},
			usable: []bool{true, true, false, false}},
		"pods that need no GPU do not count": {needs: []Need{{CPUMilli: 9}}, room: Headroom{Devices: devices(1000)},
			usable: []bool{true}},
		"a device that is too full": {needs: []Need{share(500)},
			room: Headroom{Devices: devices(1000, 300), FreeCPUMilli: 1, FreeMemoryBytes: 1}, usable: []bool{true, false},
			milli: 300},
		"no CPU is left": {needs: []Need{whole(1, 2)},
			room: Headroom{Devices: devices(1000, 1000), FreeCPUMilli: 1, FreeMemoryBytes: 1}, usable: []bool{false, false},
			milli: 2000},
		"too few devices are free": {needs: []Need{whole(3, 1)},
			room: Headroom{Devices: devices(1000, 1000), FreeCPUMilli: 1, FreeMemoryBytes: 1}, usable: []bool{false, false},
			milli: 2000},
		"one kind of pod that could use them is enough": {needs: []Need{whole(3, 1), whole(3, 1), whole(1, 1)},
			room: Headroom{Devices: devices(1000, 1000), FreeCPUMilli: 1, FreeMemoryBytes: 1}, usable: []bool{true, true}},
		"another model is asked for": {needs: []Need{{Count: 1, Milli: 1000, Models: []string{"H100"}}},
			room: Headroom{Model: "T4", Devices: devices(1000)}, usable: []bool{false}, milli: 1000},
		"a faulty device is not idle": {needs: []Need{whole(2, 0)},
			room: Headroom{Devices: devices(1000, -1), FreeMemoryBytes: 1}, usable: []bool{false, false}, milli: 1000},
		"the node has not the label that pods select": {needs: []Need{{Count: 1, Milli: 1000}}, of: chooser,
			room: Headroom{Devices: devices(1000)}, usable: []bool{false}, milli: 1000},
		"the node has the label that pods select": {needs: []Need{{Count: 1, Milli: 1000}}, of: chooser, on: inB,
			room: Headroom{Devices: devices(1000)}, usable: []bool{true}},
		"the node has a taint that no pod tolerates": {needs: []Need{{Count: 1, Milli: 1000}}, on: tainted,
			room: Headroom{Devices: devices(1000)}, usable: []bool{false}, milli: 1000},
		"the node has a taint that pods tolerate": {needs: []Need{{Count: 1, Milli: 1000}}, of: tolerant, on: tainted,
			room: Headroom{Devices: devices(1000)}, usable: []bool{true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of, mix := test.of, &Mix{}
			if of == nil {
				of = &v1.Pod{}
			}
			if test.room.Node = test.on; test.on == nil {
				test.room.Node = &v1.Node{}
			}
			for _, n := range test.needs {
				mix.Add(of, n)
			}
			usable, milli := mix.Usable(&test.room), mix.StrandedMilli(&test.room)
			if diff := cmp.Diff(test.usable, usable); diff != "" || milli != test.milli {
				t.Errorf("stranded %d, want %d; usable (-want +got):\n%s", milli, test.milli, diff)
			}
		})
	}
}

// When and in which order pods are counted makes no difference, and what is usable is idle.
func TestTheOrderOfPodsDoesNotCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		need := rapid.Custom(func(t *rapid.T) Need {
			return Need{Count: rapid.IntRange(1, 3).Draw(t, "count"), CPUMilli: rapid.Int64Range(0, 4).Draw(t, "cpu"),
				Milli: rapid.SampledFrom([]int{100, 500, 1000}).Draw(t, "milli")}
		})
		needs := rapid.SliceOfN(need, 0, 4).Draw(t, "needs")
		few, all := &Mix{}, &Mix{}
		for _, n := range needs {
			few.Add(&v1.Pod{}, n)
		}
		r := &Headroom{Node: &v1.Node{}, FreeCPUMilli: rapid.Int64Range(0, 4).Draw(t, "free"), Devices: devices(
			rapid.SliceOfN(rapid.SampledFrom([]int{-1, 0, 100, 400, 1000}), 0, 4).Draw(t, "idle")...)}
		// Looking between additions changes nothing, and neither does their order.
		for _, n := range slices.Backward(needs) {
			all.Usable(r)
			all.Add(&v1.Pod{}, n)
		}
		usable := all.Usable(r)
		if want := few.Usable(r); !slices.Equal(want, usable) {
			t.Fatalf("usable %v, want %v", usable, want)
		}
		for i, d := range r.Devices {
			if usable[i] && (d.Unhealthy || d.FreeMilli == 0) {
				t.Fatalf("device %d with %d of 1000 is usable", i, d.FreeMilli)
			}
		}
	})
}
