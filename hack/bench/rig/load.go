package rig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
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
func OtherCores(do func() error) (float64, error) {
	before, err := readLoad()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := readLoad()
	return after.otherCoresSince(before), err
}

// process is what the kernel counts for one.
type process struct {
	parent int
	// own is its CPU time, and ended that of its children that have ended, which it has waited for.
	own, ended time.Duration
}

// treeCPU is the CPU time of a process and of all below it. Those that have ended are in what their parents count.
func treeCPU(proc string, root int) (time.Duration, error) {
	files, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "stat"))
	if err != nil {
		return 0, fmt.Errorf("listing the processes: %w", err)
	}
	processes := map[int]process{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		// A process may end between the listing and the reading.
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("reading what the kernel counts: %w", err)
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return 0, fmt.Errorf("reading the number of a process: %w", err)
		}
		if processes[pid], err = parseProcess(string(text)); err != nil {
			return 0, fmt.Errorf("parsing %s: %w", file, err)
		}
	}
	if _, there := processes[root]; !there {
		return 0, fmt.Errorf("reading what the kernel counts: there is no process %d", root)
	}
	total := time.Duration(0)
	for pid, p := range processes {
		if isBelow(processes, pid, root) {
			total += p.own + p.ended
		}
	}
	return total, nil
}

// isBelow says whether a process is the root or was started by it or by one below it.
func isBelow(processes map[int]process, pid, root int) bool {
	// A number that is given again while the processes are listed could close a circle.
	for range len(processes) {
		if pid == root {
			return true
		}
		p, there := processes[pid]
		if !there {
			return false
		}
		pid = p.parent
	}
	return false
}

func parseProcess(stat string) (process, error) {
	// The name before the last parenthesis may hold blanks. The parent is the 2nd field after it; user and system time,
	// its own and those of its children, are the 12th to the 15th.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 15 {
		return process{}, fmt.Errorf("%d fields after the name, want 15 or more", len(fields))
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return process{}, fmt.Errorf("reading the parent: %w", err)
	}
	own, err := sumTicks(fields[11:13])
	if err != nil {
		return process{}, err
	}
	ended, err := sumTicks(fields[13:15])
	return process{parent, own, ended}, err
}
