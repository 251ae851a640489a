package coscheduling

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang"
)

func TestPodsWaitForTheNextFlightOnce(t *testing.T) {
	t.Parallel()
	var a afterFlight
	p := gang.Ref{UID: "p", Namespace: "default", Name: "p"}
	a.add(p)
	a.add(p)
	if refs := a.take(false); refs != nil {
		t.Errorf("before the members are bound: %v", refs)
	}
	if diff := cmp.Diff([]gang.Ref{p}, a.take(true)); diff != "" {
		t.Errorf("when they are: %s", diff)
	}
	if refs := a.take(true); len(refs) > 0 {
		t.Errorf("the next time: %v", refs)
	}
}
