package rig

import (
	"testing"
	"time"
)

func TestTheMachineUsesTime(t *testing.T) {
	t.Parallel()
	before, err := MachineCPU()
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; { // the kernel counts in hundredths of a second
	}
	if after, err := MachineCPU(); err != nil || after <= before {
		t.Errorf("the machine has used %v of CPU time and then %v, error %v; want more", before, after, err)
	}
}
