package coscheduling

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang"
)

func TestAnEventEchoesOncePerGang(t *testing.T) {
	t.Parallel()
	a, b := gang.ID{Namespace: "n", Name: "a"}, gang.ID{Namespace: "n", Name: "b"}
	// Looks are at a fixed moment of each second.
	start := time.Unix(0, 0).Add(lookOffset)
	var e echoes
	e.add(b, start)
	e.add(a, start)
	e.add(a, start.Add(echoAfter))
	steps := []struct {
		at   time.Duration
		want []gang.ID
	}{
		{at: lookEvery - 1},
		{at: lookEvery, want: []gang.ID{a, b}},
		{at: 10 * lookEvery},
	}
	for _, s := range steps {
		if diff := cmp.Diff(s.want, e.take(start.Add(s.at))); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", s.at, diff)
		}
	}
	e.add(a, start.Add(20*lookEvery))
	if got := e.take(start.Add(21 * lookEvery)); len(got) != 1 {
		t.Errorf("an echo after the first one: %v", got)
	}
}

func TestLooksDoNotDependOnWhenTheLastOneWas(t *testing.T) {
	t.Parallel()
	second := time.Unix(1000, 0)
	tests := map[string]struct {
		after time.Time
		want  time.Time
	}{
		"on the full second":            {after: second, want: second.Add(lookOffset)},
		"at a look":                     {after: second.Add(lookOffset), want: second.Add(lookEvery + lookOffset)},
		"after the look of the second":  {after: second.Add(lookEvery / 2), want: second.Add(lookEvery + lookOffset)},
		"just before the look comes up": {after: second.Add(lookOffset - 1), want: second.Add(lookOffset)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := nextLook(tt.after); !got.Equal(tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestALookIsNotPutOffWhereTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, due := range map[string]time.Time{
		"a look":                       nextLook(now),
		"the next multiple of a pause": lastMultiple(now, touchAnyway).Add(touchAnyway),
	} {
		// A time without a reading of the monotonic clock, which is printed last, is compared by the clock on the wall.
		if !strings.Contains(due.String(), " m=") {
			t.Errorf("%s is due by the clock on the wall: %s", name, due)
		}
	}
	for _, every := range []time.Duration{lookEvery, touchAnyway} {
		if got, want := lastMultiple(now, every), now.Truncate(every); !got.Round(0).Equal(want) {
			t.Errorf("the last multiple of %s until %s is %s, want %s", every, now, got, want)
		}
	}
}
