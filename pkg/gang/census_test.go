package gang

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// recounted is a census of the members from scratch.
func recounted(members map[UID]*member) Census {
	c := newCensus()
	for _, m := range members {
		c.count(&m.Member, 1)
	}
	return c
}

var exactly = cmp.AllowUnexported(Census{}, View{})

// Counts equal a recount after any sequence of members that come, change and go, and mean what their names say.
func TestCensus(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newCensus()
		members := map[UID]*member{}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			i := rapid.IntRange(0, 8).Draw(t, "member")
			if old := members[uid(i)]; old != nil {
				c.count(&old.Member, -1)
				delete(members, uid(i))
			}
			if rapid.IntRange(0, 3).Draw(t, "goes") == 0 {
				continue
			}
			m := &member{Member: changed(i, func(m *Member) {
				m.State = State(rapid.IntRange(0, int(states)-1).Draw(t, "state"))
				m.Role = rapid.SampledFrom([]string{"", "leader", "worker"}).Draw(t, "role")
				m.Priority = int32(rapid.IntRange(-1, 1).Draw(t, "priority"))
				m.Precedence = Precedence{Ages: rapid.Bool().Draw(t, "ages"),
					Wait: time.Duration(rapid.IntRange(0, 2).Draw(t, "wait"))}
				m.Minimum = rapid.IntRange(0, 3).Draw(t, "minimum")
				m.Running = m.State == Bound && rapid.Bool().Draw(t, "running")
			})}
			members[uid(i)] = m
			c.count(&m.Member, 1)
		}
		if diff := cmp.Diff(recounted(members), c, exactly); diff != "" {
			t.Fatalf("counts (-recount +kept):\n%s", diff)
		}
		// The questions, answered the slow way.
		var settled, existing, running, largest int
		workers, existingWorkers := 0, 0
		lowest, last := int32(0), Precedence{}
		first := true
		for _, m := range members {
			placed := m.State == Bound || m.State == Succeeded
			if placed {
				settled++
			}
			if placed || m.State == Pending {
				existing++
			}
			if m.Role == "worker" && placed {
				workers++
			}
			if m.Role == "worker" && (placed || m.State == Pending) {
				existingWorkers++
			}
			if m.Running {
				running++
			}
			largest = max(largest, m.Minimum)
			last.Ages, last.Wait = last.Ages || m.Precedence.Ages, max(last.Wait, m.Precedence.Wait)
			if first || m.Priority < lowest {
				lowest, first = m.Priority, false
			}
		}
		if got := c.precedence(); got != last {
			t.Fatalf("precedence %v, want %v", got, last)
		}
		want := []int{settled, existing, running, largest, workers, existingWorkers, int(lowest)}
		got := []int{c.Settled(), c.Existing(), c.Running, c.largestLabel(), c.SettledIn("worker"), c.existingIn("worker"),
			int(c.priority())}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("answers (-want +got):\n%s", diff)
		}
		minimum := Minimum{Total: rapid.IntRange(1, 6).Draw(t, "total"),
			Roles: map[string]int{"worker": rapid.IntRange(0, 3).Draw(t, "workers")}}
		if met := settled >= minimum.Total && workers >= minimum.Roles["worker"]; c.met(minimum) != met {
			t.Fatalf("minimum %s is met: %t, want %t", minimum, c.met(minimum), met)
		}
		if quorum := existing >= minimum.Total && existingWorkers >= minimum.Roles["worker"]; c.quorum(minimum) != quorum {
			t.Fatalf("quorum of %s: %t, want %t", minimum, c.quorum(minimum), quorum)
		}
	})
}
