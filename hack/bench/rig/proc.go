package rig

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of CPU times in /proc on Linux.
const ticksPerSecond = 100

// ProcessCPU is the CPU time that a process has used.
func ProcessCPU(pid int) (time.Duration, error) {
	p, err := readProc(fmt.Sprintf("/proc/%d/stat", pid), parseProcess)
	return p.own, err
}

// MachineCPU is the CPU time that everything on the machine has used, and other virtual machines of the host while this
// one could have run.
func MachineCPU() (time.Duration, error) {
	return readProc("/proc/stat", parseMachineCPU)
}

// PeakResidentBytes is the most memory that a process has had resident.
func PeakResidentBytes(pid int) (int64, error) { return residentBytes(pid, "VmHWM") }

// ResidentBytes is the memory that a process has resident.
func ResidentBytes(pid int) (int64, error) { return residentBytes(pid, "VmRSS") }

func residentBytes(pid int, field string) (int64, error) {
	return readProc(fmt.Sprintf("/proc/%d/status", pid),
		func(status string) (int64, error) { return parseBytes(status, field) })
}

func readProc[T any](path string, parse func(text string) (T, error)) (value T, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return value, fmt.Errorf("reading what the kernel counts: %w", err)
	}
	if value, err = parse(string(text)); err != nil {
		return value, fmt.Errorf("parsing %s: %w", path, err)
	}
	return value, nil
}

func parseMachineCPU(stat string) (time.Duration, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	// The times are user, nice, system, idle, iowait, irq, softirq and steal. The two after these, of guests, are part of
	// the first two.
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("first line %q, want cpu and 8 or more times", line)
	}
	return sumTicks(append(fields[1:4:4], fields[6:9]...))
}

func sumTicks(fields []string) (time.Duration, error) {
	ticks := int64(0)
	for _, field := range fields {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading a time: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

func parseBytes(status, field string) (int64, error) {
	_, rest, found := strings.Cut(status, "\n"+field+":")
	if !found {
		return 0, fmt.Errorf("no field %s", field)
	}
	line, _, _ := strings.Cut(rest, "\n")
	number, unit, _ := strings.Cut(strings.TrimSpace(line), " ")
	kib, err := strconv.ParseInt(number, 10, 64)
	if err != nil || unit != "kB" {
		return 0, fmt.Errorf("field %s is %q, want a number of kB", field, strings.TrimSpace(line))
	}
	return kib << 10, nil
}
