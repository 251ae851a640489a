package rig

import (
	"errors"
	"testing"
)

func TestCatchReturnsTheErrorThatEndedABenchmark(t *testing.T) {
	t.Parallel()
	cause := errors.New("refused")
	after := false
	err := Catch(func() {
		Fail(nil)
		Fail(cause)
		after = true
	})
	if !errors.Is(err, cause) || after {
		t.Errorf("got error %v, went on: %t; want refused, and an end", err, after)
	}
	if err := Catch(func() { Must(1, cause) }); !errors.Is(err, cause) {
		t.Errorf("got error %v, want that of the value", err)
	}
	if err := Catch(func() { Must(1, nil) }); err != nil {
		t.Errorf("got error %v of a value without one", err)
	}
}

func TestCatchLetsOtherPanicsPass(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a defect of the program is taken for an error")
		}
	}()
	_ = Catch(func() { panic("a defect") })
}
