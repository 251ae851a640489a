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
	if diff := cmp.Diff([]gang.Ref{p}, a.take()); diff != "" {
		t.Errorf("when the next members are bound: %s", diff)
	}
	if refs := a.take(); len(refs) > 0 {
		t.Errorf("the next time: %v", refs)
	}
}
