package rig

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// ticksPerSecond is the unit of CPU times on Linux.
const ticksPerSecond = 100

// load is what has been used of the machine's CPU time up to one moment.
type load struct {
	at time.Time
	// machine is all of it, benchmark what this process used and those that it started and that have ended.
	machine, benchmark time.Duration
}

func readLoad() (load, error) {
	machine, err := machineCPU()
	return load{time.Now(), machine, UsedCPU() + used(syscall.RUSAGE_CHILDREN)}, err
}

// otherCoresSince is how many cores were busy on average with neither the benchmark nor what it started. The kernel
// counts the machine's time in hundredths of a second, so the difference may be a little below 0.
func (l load) otherCoresSince(before load) float64 {
	other := (l.machine - before.machine) - (l.benchmark - before.benchmark)
	return max(0, other.Seconds()/l.at.Sub(before.at).Seconds())
}

// OtherCores is how many cores were busy on average with what is no part of the benchmark while do ran. It has to end
// the processes that it starts.
func OtherCores(do func()) (float64, error) {
	before, err := readLoad()
	if err != nil {
		return 0, err
	}
	do()
	after, err := readLoad()
	return after.otherCoresSince(before), err
}

// UsedCPU is the CPU time that this process has used.
func UsedCPU() time.Duration { return used(syscall.RUSAGE_SELF) }

func used(by int) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(by, &usage); err != nil {
		panic(err) // Linux refuses only what it does not know
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// machineCPU is the CPU time that everything on the machine has used, and other virtual machines of the host while this
// one could have run.
func machineCPU() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("reading what the kernel counts: %w", err)
	}
	var first string
	var user, nice, system, idle, waiting, interrupts, softInterrupts, stolen int64
	if _, err := fmt.Sscan(string(text), &first, &user, &nice, &system, &idle, &waiting, &interrupts, &softInterrupts,
		&stolen); err != nil {
		return 0, fmt.Errorf("reading what the kernel counts: %w", err)
	}
	// The times of guests are part of user and nice.
	ticks := user + nice + system + interrupts + softInterrupts + stolen
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}
