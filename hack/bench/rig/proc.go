package rig

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// seconds is a time in the unit in which the kernel's counts are read.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

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
