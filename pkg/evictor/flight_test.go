package evictor

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

func TestRequestsWaitForTheNextFlightOnce(t *testing.T) {
	t.Parallel()
	var a flight
	first, second := &v1.Pod{}, &v1.Pod{}
	a.add(beneficiary{name: "pod default/p", only: first})
	a.add(beneficiary{name: "pod default/p", only: second})
	a.add(beneficiary{name: "gang default/g"})
	var got []string
	for name, r := range a.take() {
		if name == "pod default/p" && r.only != second {
			t.Error("of two requests for the pod, the first is kept")
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
