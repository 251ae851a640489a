package process

import (
	"errors"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

type number int

func (n number) Clone() fwk.StateData { return n }

type other struct{}

func (other) Clone() fwk.StateData { return other{} }

func TestRead(t *testing.T) {
	t.Parallel()
	state := framework.NewCycleState()
	state.Write("n", number(7))
	if got, err := Read[number](state, "n"); err != nil || got != 7 {
		t.Errorf("got %d and error %v, want 7", got, err)
	}
	if _, err := Read[number](state, "m"); !errors.Is(err, fwk.ErrNotFound) {
		t.Errorf("got error %v of what was not written, want %v", err, fwk.ErrNotFound)
	}
	if _, err := Read[other](state, "n"); err == nil || err.Error() !=
		"reading n of the cycle: want process.other, got process.number" {
		t.Errorf("got error %v of another type", err)
	}
}
