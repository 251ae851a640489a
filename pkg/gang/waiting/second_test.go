package waiting

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang"
)

func TestAnEventHasASecondAttemptFollow(t *testing.T) {
	t.Parallel()
	a, b := named("a"), named("b")
	// Looks are at a fixed moment of each second.
	start := time.Unix(1000, 0)
	q := NewQueue()
	for _, id := range []gang.ID{b, a} {
		q.Wait(id, gang.Key{}, start, start)
		q.RetryTwice(id, start)
		q.RetryTwice(id, start)
	}
	failing := func(now time.Time) (tried []string) {
		for id, ok, _ := q.Next(now); ok; id, ok, _ = q.Next(now) {
			tried = append(tried, id.Name)
			q.Wait(id, gang.Key{}, now, now)
		}
		return tried
	}
	for _, s := range []struct {
		after time.Duration
		want  []string
	}{
		{0, []string{"a", "b"}},
		{LookEvery - 1, nil},
		{LookEvery, []string{"a", "b"}},
		{10 * LookEvery, nil},
	} {
		if diff := cmp.Diff(s.want, failing(start.Add(s.after))); diff != "" {
			t.Errorf("tried %s after the event (-want +got):\n%s", s.after, diff)
		}
	}
	q.Join(a, gang.Key{}, start.Add(20*LookEvery))
	failing(start.Add(20 * LookEvery))
	q.Wait(a, gang.Key{}, start, start.Add(20*LookEvery))
	if diff := cmp.Diff([]string{"a"}, failing(start.Add(21*LookEvery))); diff != "" {
		t.Errorf("tried after the first attempt (-want +got):\n%s", diff)
	}
}

func TestALookIsNotPutOffWhereTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, due := range map[string]time.Time{
		"a look":                       NextLook(now),
		"the next multiple of a pause": LastMultiple(now, time.Minute).Add(time.Minute),
	} {
		// A time without a reading of the monotonic clock, which is printed last, is compared by the wall clock.
		if !strings.Contains(due.String(), " m=") {
			t.Errorf("%s is due by the wall clock: %s", name, due)
		}
	}
	for _, every := range []time.Duration{250 * time.Millisecond, LookEvery, time.Minute} {
		if got, want := LastMultiple(now, every), now.Truncate(every); !got.Round(0).Equal(want) {
			t.Errorf("the last multiple of %s until %s is %s, want %s", every, now, got, want)
		}
	}
}
