package eviction

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang"
)

func TestARepairGathersFaultsThatComeTogether(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type at struct {
		after   time.Duration
		failing []gang.UID
	}
	for name, test := range map[string]struct {
		see []at
		// due are the times at which room is looked for, and told is how often the gang is told.
		due  []time.Duration
		told int
	}{
		"nothing fails": {see: []at{{0, nil}, {2 * time.Second, nil}}},
		"two faults within a second": {see: []at{{0, []gang.UID{"a"}}, {800 * time.Millisecond, []gang.UID{"b", "a"}},
			{1500 * time.Millisecond, []gang.UID{"a", "b"}}, {2 * time.Second, []gang.UID{"b", "a"}}},
			due: []time.Duration{2 * time.Second}, told: 1},
		"room is looked for again": {see: []at{{0, []gang.UID{"a"}}, {time.Second, []gang.UID{"a"}},
			{4 * time.Second, []gang.UID{"a"}},
			{6 * time.Second, []gang.UID{"a"}}}, due: []time.Duration{time.Second, 6 * time.Second}, told: 1},
		"one fewer is no event": {see: []at{{0, []gang.UID{"a", "b"}}, {time.Second, []gang.UID{"a", "b"}},
			{3 * time.Second, []gang.UID{"b"}}},
			due: []time.Duration{time.Second}, told: 1},
		"a fault that comes later is one": {see: []at{{0, []gang.UID{"a"}}, {time.Second, []gang.UID{"a"}},
			{3 * time.Second, []gang.UID{"a", "b"}},
			{4 * time.Second, []gang.UID{"a", "b"}}}, due: []time.Duration{time.Second, 4 * time.Second}, told: 2},
		"a fault that comes again is one": {see: []at{{0, []gang.UID{"a"}}, {time.Second, []gang.UID{"a"}},
			{2 * time.Second, nil},
			{3 * time.Second, []gang.UID{"a"}}, {4 * time.Second, []gang.UID{"a"}}},
			due: []time.Duration{time.Second, 4 * time.Second}, told: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r Repair
			var due []time.Duration
			told := 0
			for _, s := range test.see {
				now := start.Add(s.after)
				r.See(s.failing, now)
				if !r.Due(now) {
					continue
				}
				due = append(due, s.after)
				if r.Tell() {
					told++
				}
			}
			if diff := cmp.Diff(test.due, due); diff != "" || told != test.told {
				t.Errorf("told %d times, want %d; due (-want +got):\n%s", told, test.told, diff)
			}
		})
	}
}

func TestRoomIsKeptForATimeAfterTheLastFault(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var r Repair
	keeps := func(after time.Duration) bool { return r.Keeps(time.Minute, start.Add(after)) }
	if keeps(0) {
		t.Error("room is kept where nothing fails")
	}
	r.See([]gang.UID{"a"}, start)
	if !keeps(time.Minute) || keeps(time.Minute+gather) {
		t.Error("room is not kept for a minute")
	}
	r.See([]gang.UID{"a", "b"}, start.Add(time.Minute))
	if !keeps(2*time.Minute) || keeps(2*time.Minute+gather) {
		t.Error("room is not kept for a minute after another fault")
	}
}
