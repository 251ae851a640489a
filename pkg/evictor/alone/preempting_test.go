package alone

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang"
)

func TestPreemptorsAreLookedAtInTurn(t *testing.T) {
	t.Parallel()
	var p Preempting
	refs := make([]gang.Ref, preemptorsAtOnce+2)
	for i := range refs {
		refs[i] = gang.Ref{UID: gang.UID(fmt.Sprint(i))}
		p.Add(refs[i])
	}
	last := len(refs) - 1
	if diff := cmp.Diff(refs[:preemptorsAtOnce], p.Next()); diff != "" {
		t.Errorf("first: %s", diff)
	}
	p.Drop(refs[0].UID)
	p.Drop("unknown")
	want := append([]gang.Ref{refs[last-1], refs[last]}, refs[1:preemptorsAtOnce-1]...)
	if diff := cmp.Diff(want, p.Next()); diff != "" {
		t.Errorf("second, without the one that was tried: %s", diff)
	}
	for _, ref := range refs {
		p.Drop(ref.UID)
	}
	if left := p.Next(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestNoMorePreemptorsAreHeldThanTheBound(t *testing.T) {
	t.Parallel()
	var p Preempting
	for i := range mostPreemptors + 1 {
		p.Add(gang.Ref{UID: gang.UID(fmt.Sprint(i))})
	}
	if len(p.pods) != mostPreemptors {
		t.Errorf("%d pods are held, want %d", len(p.pods), mostPreemptors)
	}
}
