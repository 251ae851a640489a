package coscheduling

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang"
)

func TestAnEventEchoesOncePerGang(t *testing.T) {
	t.Parallel()
	a, b := gang.ID{Namespace: "n", Name: "a"}, gang.ID{Namespace: "n", Name: "b"}
	start := time.Unix(0, 0)
	var e echoes
	e.add(a, start)
	e.add(a, start.Add(echoAfter/2))
	e.add(b, start.Add(echoAfter/2))
	steps := []struct {
		after time.Duration
		want  []gang.ID
	}{
		{after: echoAfter - 1},
		{after: echoAfter, want: []gang.ID{a}},
		{after: echoAfter * 3 / 2, want: []gang.ID{b}},
		{after: 10 * echoAfter},
	}
	for _, s := range steps {
		if diff := cmp.Diff(s.want, e.take(start.Add(s.after))); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", s.after, diff)
		}
	}
	e.add(a, start.Add(20*echoAfter))
	if got := e.take(start.Add(21 * echoAfter)); len(got) != 1 {
		t.Errorf("an echo after the first one: %v", got)
	}
}
