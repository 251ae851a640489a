package gpu

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func devices(free ...int) []Device {
	list := make([]Device, len(free))
	for i, f := range free {
		list[i] = Device{FreeMilli: max(f, 0), Unhealthy: f < 0}
	}
	return list
}

func TestWhatAWorkloadCannotUse(t *testing.T) {
	t.Parallel()
	whole := func(count int, cpu int64) RequestKind {
		return RequestKind{Count: count, Milli: WholeMilli, CPUMilli: cpu, MemoryBytes: 1}
	}
	share := func(milli int) RequestKind { return RequestKind{Count: 1, Milli: milli, CPUMilli: 1, MemoryBytes: 1} }
	tests := map[string]struct {
		kinds    map[*RequestKind]int
		room     Room
		usable   []bool
		stranded float64
	}{
		"without a workload nothing is stranded": {room: Room{Devices: devices(1000, 300, 0, -1)},
			usable: []bool{true, true, false, false}},
		"requests for no GPU do not count": {kinds: map[*RequestKind]int{{CPUMilli: 9}: 5},
			room: Room{Devices: devices(1000)}, usable: []bool{true}},
		"a device that is too full": {kinds: map[*RequestKind]int{ptr(share(500)): 1},
			room: Room{Devices: devices(1000, 300), FreeCPUMilli: 1, FreeMemoryBytes: 1}, usable: []bool{true, false},
			stranded: 300},
		"no CPU is left": {kinds: map[*RequestKind]int{ptr(whole(1, 2)): 1},
			room: Room{Devices: devices(1000, 1000), FreeCPUMilli: 1, FreeMemoryBytes: 1}, usable: []bool{false, false},
			stranded: 2000},
		"too few devices are free": {kinds: map[*RequestKind]int{ptr(whole(3, 1)): 1},
			room: Room{Devices: devices(1000, 1000), FreeCPUMilli: 1, FreeMemoryBytes: 1}, usable: []bool{false, false},
			stranded: 2000},
		"kinds count as often as they were seen": {kinds: map[*RequestKind]int{ptr(whole(3, 1)): 1, ptr(whole(1, 1)): 3},
			room: Room{Devices: devices(1000, 1000), FreeCPUMilli: 1, FreeMemoryBytes: 1}, usable: []bool{true, true},
			stranded: 500},
		"another model is asked for": {kinds: map[*RequestKind]int{{Count: 1, Milli: 1000, Models: []string{"H100"}}: 1},
			room: Room{Model: "T4", Devices: devices(1000)}, usable: []bool{false}, stranded: 1000},
		"a faulty device is not idle": {kinds: map[*RequestKind]int{ptr(whole(2, 0)): 1},
			room: Room{Devices: devices(1000, -1), FreeMemoryBytes: 1}, usable: []bool{false, false}, stranded: 1000},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &Workload{}
			for k, times := range test.kinds {
				w.Observe(*k, times)
			}
			usable, stranded := w.Judge(&test.room)
			if diff := cmp.Diff(test.usable, usable); diff != "" || stranded != test.stranded {
				t.Errorf("stranded %v, want %v; usable (-want +got):\n%s", stranded, test.stranded, diff)
			}
		})
	}
}

func ptr(k RequestKind) *RequestKind { return &k }

// Stranded is never more than is idle, and all of it where no device is usable.
func TestStrandedIsAPartOfWhatIsIdle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &Workload{}
		for i := range rapid.IntRange(0, 5).Draw(t, "kinds") {
			k := RequestKind{Count: rapid.IntRange(1, 4).Draw(t, "count"),
				Milli: rapid.SampledFrom([]int{100, 500, 1000}).Draw(t, "milli"), CPUMilli: rapid.Int64Range(0, 8).Draw(t, "cpu"),
				Models: []string{fmt.Sprint("m", i%2)}}
			w.Observe(k, rapid.IntRange(1, 9).Draw(t, "times"))
		}
		r := &Room{Model: "m0", FreeCPUMilli: rapid.Int64Range(0, 8).Draw(t, "free"), FreeMemoryBytes: 1}
		for range rapid.IntRange(0, 4).Draw(t, "devices") {
			r.Devices = append(r.Devices, devices(rapid.SampledFrom([]int{-1, 0, 100, 400, 1000}).Draw(t, "idle"))...)
		}
		usable, stranded := w.Judge(r)
		idle, some := 0, false
		for i, d := range r.Devices {
			idle += d.FreeMilli
			some = some || usable[i]
			if usable[i] && (d.Unhealthy || d.FreeMilli == 0) {
				t.Fatalf("device %d with %d of 1000 is usable", i, d.FreeMilli)
			}
		}
		if stranded < 0 || stranded > float64(idle) || w.StrandedMilli(r) != stranded {
			t.Fatalf("%v stranded (%v) of %d", stranded, w.StrandedMilli(r), idle)
		}
		if !some && len(w.kinds) > 0 && stranded != float64(idle) {
			t.Fatalf("no device is usable, and %v of %d is stranded", stranded, idle)
		}
	})
}
