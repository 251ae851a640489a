package waiting

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

func TestRequestsWaitForTheNextFlightOnce(t *testing.T) {
	t.Parallel()
	var a Flight
	first, second := &v1.Pod{}, &v1.Pod{}
	a.Add(For{Name: "pod default/p", Only: first})
	a.Add(For{Name: "pod default/p", Only: second})
	a.Add(For{Name: "gang default/g"})
	var got []string
	for name, r := range a.Take() {
		if name == "pod default/p" && r.Only != second {
			t.Error("of two requests for the pod, the first is kept")
		}
		got = append(got, name)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"gang default/g", "pod default/p"}, got); diff != "" {
		t.Errorf("when the next members are bound: %s", diff)
	}
	if again := a.Take(); len(again) > 0 {
		t.Errorf("the next time: %v", again)
	}
}
