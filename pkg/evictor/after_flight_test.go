package evictor

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequestsWaitForTheNextFlightOnce(t *testing.T) {
	t.Parallel()
	var a afterFlight
	a.add(&request{name: "pod default/p", priority: 1})
	a.add(&request{name: "pod default/p", priority: 2})
	a.add(&request{name: "gang default/g"})
	var got []string
	for name, r := range a.take() {
		if name == "pod default/p" && r.priority != 2 {
			t.Errorf("of two requests for the pod, that of priority %d is kept", r.priority)
		}
		got = append(got, name)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"gang default/g", "pod default/p"}, got); diff != "" {
		t.Errorf("when the next members are bound: %s", diff)
	}
	if again := a.take(); len(again) > 0 {
		t.Errorf("the next time: %v", again)
	}
}
