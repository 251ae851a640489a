package coscheduling

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang"
)

func TestPodsWaitForTheNextStartOnce(t *testing.T) {
	t.Parallel()
	var a afterStart
	p := gang.Ref{UID: "p", Namespace: "default", Name: "p"}
	a.add(p)
	a.add(p)
	if refs := a.take(false); refs != nil {
		t.Errorf("without a start: %v", refs)
	}
	if diff := cmp.Diff([]gang.Ref{p}, a.take(true)); diff != "" {
		t.Errorf("at a start: %s", diff)
	}
	if refs := a.take(true); len(refs) > 0 {
		t.Errorf("at the next start: %v", refs)
	}
}
