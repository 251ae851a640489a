package rig

import (
	"os"
	"testing"
)

func TestThisProcessIsPartOfTheMachine(t *testing.T) {
	t.Parallel()
	own, err := ProcessCPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	machine, err := MachineCPU()
	if err != nil {
		t.Fatal(err)
	}
	if own > machine {
		t.Errorf("this process has used %v of CPU time, more than the machine's %v", own, machine)
	}
	resident, peak, err := ResidentBytes(os.Getpid())
	if err != nil || resident < 1<<20 {
		t.Errorf("this process has %d bytes resident, error %v; want at least 1 MiB", resident, err)
	}
	if peak < resident {
		t.Errorf("the peak of this process is %d bytes, less than the %d that it has", peak, resident)
	}
	if _, err := ProcessCPU(1 << 30); err == nil {
		t.Error("a process that does not exist has used CPU time, want an error")
	}
}
