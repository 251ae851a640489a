package rig

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// seconds is a time in the unit in which the kernel's counts are read.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// ProcessCPU is the CPU time that a process has used.
func ProcessCPU(pid int) (time.Duration, error) {
	stat, err := readProcess(pid, procfs.Proc.Stat)
	return seconds(stat.CPUTime()), err
}

// ResidentBytes is the memory that a process has resident, now and at most so far.
func ResidentBytes(pid int) (now, peak uint64, err error) {
	status, err := readProcess(pid, procfs.Proc.NewStatus)
	return status.VmRSS, status.VmHWM, err
}

func readProcess[T any](pid int, read func(procfs.Proc) (T, error)) (value T, err error) {
	p, err := procfs.NewProc(pid)
	if err == nil {
		value, err = read(p)
	}
	if err != nil {
		return value, fmt.Errorf("reading what the kernel counts for process %d: %w", pid, err)
	}
	return value, nil
}

// MachineCPU is the CPU time that everything on the machine has used, and other virtual machines of the host while this
// one could have run.
func MachineCPU() (time.Duration, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, fmt.Errorf("reading what the kernel counts: %w", err)
	}
	stat, err := fs.Stat()
	if err != nil {
		return 0, fmt.Errorf("reading what the kernel counts: %w", err)
	}
	// The times of guests are part of user and nice.
	c := stat.CPUTotal
	return seconds(c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal), nil
}
