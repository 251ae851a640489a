package defragment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestMovesGoOneByOneAndStopAtTheFirstThatGoesWrong(t *testing.T) {
	t.Parallel()
	allowed := Seen{Waits: true, Noticed: true, Allowed: true, Grace: 30 * time.Second}
	gone, back := allowed, allowed
	gone.Gone = true
	back.Gone, back.Back = true, true
	type look struct {
		after time.Duration
		seen  Seen
		step  Step
		why   string
	}
	for _, tc := range []struct {
		name  string
		pods  int
		looks []look
	}{
		{"two pods move, and the gang starts", 2, []look{
			{0, allowed, Evict, ""}, {time.Second, allowed, Wait, ""}, {2 * time.Second, gone, Wait, ""},
			{3 * time.Second, gone, Wait, ""}, {4 * time.Second, back, Next, ""},
			{5 * time.Second, allowed, Evict, ""}, {6 * time.Second, back, Wait, ""}, {7 * time.Second, back, Next, ""},
			{8 * time.Second, back, Wait, ""}, {9 * time.Second, Seen{}, Done, ""}}},
		{"no pod goes before the notice has ended", 1, []look{
			{0, Seen{Waits: true, Allowed: true}, Wait, ""}, {time.Second, allowed, Evict, ""}}},
		{"a pod that has ended on its own need not move", 1, []look{
			{0, gone, Next, ""}, {time.Second, allowed, Wait, ""}}},
		{"a PodDisruptionBudget forbids the second move", 2, []look{
			{0, allowed, Evict, ""}, {time.Second, back, Wait, ""}, {2 * time.Second, back, Next, ""},
			{3 * time.Second, Seen{Waits: true, Noticed: true}, Stop, "a PodDisruptionBudget does not allow that it goes"}}},
		{"a pod does not terminate", 2, []look{
			{0, allowed, Evict, ""}, {time.Minute, allowed, Wait, ""},
			{61 * time.Second, allowed, Stop, "it does not terminate"}}},
		{"a pod does not come back", 2, []look{
			{0, allowed, Evict, ""}, {time.Second, gone, Wait, ""}, {2*time.Minute + time.Second, gone, Wait, ""},
			{2*time.Minute + 2*time.Second, gone, Stop, "nothing that replaces it has a node"}}},
		{"the gang does not start", 1, []look{
			{0, gone, Next, ""}, {time.Minute, allowed, Wait, ""},
			{61 * time.Second, allowed, Stop, "the gang does not start although the pods have moved"}}},
		{"the gang starts as soon as the first pod has gone, which still comes back", 2, []look{
			{0, allowed, Evict, ""}, {time.Second, Seen{Gone: true}, Wait, ""}, {2 * time.Second, Seen{Gone: true}, Wait, ""},
			{3 * time.Second, Seen{Gone: true, Back: true}, Next, ""}, {4 * time.Second, Seen{}, Done, ""}}},
		{"the gang starts elsewhere before a pod goes", 2, []look{
			{0, Seen{Waits: true, Allowed: true}, Wait, ""}, {time.Second, Seen{}, Done, ""}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := NewMoves(tc.pods)
			for i, l := range tc.looks {
				step, why := m.Step(l.seen, t0.Add(l.after))
				if diff := cmp.Diff([]any{l.step, l.why}, []any{step, why}); diff != "" {
					t.Fatalf("look %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// TestOnePodIsAwayAtATime plays moves in which anything is seen at any time: no pod is evicted before the one before it
// is back, and none after a stop.
func TestOnePodIsAwayAtATime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pods := rapid.IntRange(1, 4).Draw(t, "pods")
		m := NewMoves(pods)
		now, away, evicted := t0, false, 0
		for range 100 {
			now = now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
			s := Seen{Noticed: rapid.Bool().Draw(t, "noticed"), Waits: rapid.IntRange(0, 20).Draw(t, "waits") > 0,
				Allowed: rapid.IntRange(0, 5).Draw(t, "allowed") > 0,
				Gone:    rapid.Bool().Draw(t, "gone"), Back: rapid.Bool().Draw(t, "back")}
			switch step, why := m.Step(s, now); step {
			case Evict:
				if evicted++; away || !s.Allowed || !s.Noticed || evicted > pods {
					t.Fatalf("evicted while another is away: %t, allowed: %t, the %dth of %d", away, s.Allowed, evicted, pods)
				}
				away = true
			case Next:
				if away = false; !s.Gone && !s.Back {
					t.Fatal("goes on although the pod is not back")
				}
			case Done, Stop:
				if step == Done && away {
					t.Fatal("ends while a pod is away")
				}
				if (step == Stop) != (why != "") {
					t.Fatalf("step %d says %q", step, why)
				}
				return
			case Wait:
			}
		}
	})
}
