package coscheduling

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang"
)

func TestPreemptorsAreLookedAtInTurn(t *testing.T) {
	t.Parallel()
	var p preemptors
	refs := make([]gang.Ref, preemptorsAtOnce+2)
	for i := range refs {
		refs[i] = gang.Ref{UID: gang.UID(fmt.Sprint(i))}
		p.add(refs[i])
	}
	last := len(refs) - 1
	if diff := cmp.Diff(refs[:preemptorsAtOnce], p.next()); diff != "" {
		t.Errorf("first: %s", diff)
	}
	p.drop(refs[0].UID)
	p.drop("unknown")
	want := append([]gang.Ref{refs[last-1], refs[last]}, refs[1:preemptorsAtOnce-1]...)
	if diff := cmp.Diff(want, p.next()); diff != "" {
		t.Errorf("second, without the one that was tried: %s", diff)
	}
	for _, ref := range refs {
		p.drop(ref.UID)
	}
	if left := p.next(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestNoMorePreemptorsAreHeldThanTheBound(t *testing.T) {
	t.Parallel()
	var p preemptors
	for i := range mostPreemptors + 1 {
		p.add(gang.Ref{UID: gang.UID(fmt.Sprint(i))})
	}
	if len(p.pods) != mostPreemptors {
		t.Errorf("%d pods are held, want %d", len(p.pods), mostPreemptors)
	}
}
