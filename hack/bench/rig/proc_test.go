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
	work := 0
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; { // the kernel counts in hundredths of a second
		work++
	}
	if after, err := MachineCPU(); err != nil || after <= before {
		t.Errorf("the machine has used %v of CPU time and then %v, error %v; want more for %d rounds", before, after,
			err, work)
	}
}
