package rig

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// load is what has been used of the machine's CPU time up to one moment.
type load struct {
	at time.Time
	// machine is all of it, benchmark what this process used, those it started, and those that these started.
	machine, benchmark time.Duration
}

// readLoad reads it.
func readLoad() (load, error) {
	l := load{at: time.Now()}
	var err error
	if l.benchmark, err = treeCPU("/proc", os.Getpid()); err != nil {
		return load{}, err
	}
	l.machine, err = MachineCPU()
	return l, err
}

// otherCoresSince is how many cores were busy on average with neither the benchmark nor what it started. The kernel
// counts in hundredths of a second, for each process alone, so the difference may be a little below 0.
func (l load) otherCoresSince(before load) float64 {
	other := (l.machine - before.machine) - (l.benchmark - before.benchmark)
	return max(0, other.Seconds()/l.at.Sub(before.at).Seconds())
}

// OtherCores is how many cores were busy on average with what is no part of the benchmark while do ran.
func OtherCores(do func()) float64 {
	before := Must(readLoad())
	do()
	return Must(readLoad()).otherCoresSince(before)
}

// treeCPU is the CPU time of a process and of all below it. Those that have ended are in what their parents count.
func treeCPU(proc string, root int) (time.Duration, error) {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return 0, fmt.Errorf("listing the processes: %w", err)
	}
	all, err := fs.AllProcs()
	if err != nil {
		return 0, fmt.Errorf("listing the processes: %w", err)
	}
	processes := map[int]procfs.ProcStat{}
	for _, p := range all {
		stat, err := p.Stat()
		// A process may end between the listing and the reading.
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("reading what the kernel counts for process %d: %w", p.PID, err)
		}
		processes[p.PID] = stat
	}
	if _, there := processes[root]; !there {
		return 0, fmt.Errorf("reading what the kernel counts: there is no process %d", root)
	}
	ticks := 0
	for pid, p := range processes {
		if isBelow(processes, pid, root) {
			ticks += int(p.UTime+p.STime) + p.CUTime + p.CSTime
		}
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// ticksPerSecond is the unit of CPU times of processes on Linux.
const ticksPerSecond = 100

// isBelow says whether a process is the root or was started by it or by one below it.
func isBelow(processes map[int]procfs.ProcStat, pid, root int) bool {
	// A number that is given again while the processes are listed could close a circle.
	for range len(processes) {
		if pid == root {
			return true
		}
		p, there := processes[pid]
		if !there {
			return false
		}
		pid = p.PPID
	}
	return false
}
