package rig

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestParseProcess(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, stat string
		want       process
	}{
		{
			name: "its own time is told from that of children that have ended",
			stat: "7 (scheduler) S 1 2 3 4 5 6 7 8 9 10 250 50 100 20 20", want: process{1, 3 * time.Second, 1200 * time.Millisecond},
		},
		{
			name: "a name may hold blanks and parentheses",
			stat: "7 (a) b (c) S 4 2 3 4 5 6 7 8 9 10 1 2 0 0", want: process{4, 30 * time.Millisecond, 0},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseProcess(tt.stat)
			checkParsed(t, got, err, tt.want, "")
		})
	}
}

func TestParseMachineCPU(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, stat string
		want       time.Duration
		wantErr    string
	}{
		{
			name: "all but idle and waiting for disks is work",
			stat: "cpu  1000 200 300 9999999 8888888 40 50 6 77 88\ncpu0 1 1 1 1\n", want: 15960 * time.Millisecond,
		},
		{name: "a file that begins otherwise is an error", stat: "intr 5\n", wantErr: `first line "intr 5"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseMachineCPU(tt.stat)
			checkParsed(t, got, err, tt.want, tt.wantErr)
		})
	}
}

func TestParseBytes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, status string
		want         int64
		wantErr      string
	}{
		{
			name:   "the peak is told from what is resident now",
			status: "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n", want: 2 << 20,
		},
		{
			name:   "a process without memory, as one that has ended, is an error",
			status: "Name:\tx\n", wantErr: "no field VmHWM",
		},
		{name: "another unit is an error", status: "Name:\tx\nVmHWM:\t2 MB\n", wantErr: `"2 MB"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseBytes(tt.status, "VmHWM")
			checkParsed(t, got, err, tt.want, tt.wantErr)
		})
	}
}

func checkParsed[T comparable](t *testing.T, got T, err error, want T, wantErr string) {
	t.Helper()
	if wantErr != "" {
		if err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Errorf("got error %v, want one with %q", err, wantErr)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

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
	resident, err := ResidentBytes(os.Getpid())
	if err != nil || resident < 1<<20 {
		t.Errorf("this process has %d bytes resident, error %v; want at least 1 MiB", resident, err)
	}
	if peak, err := PeakResidentBytes(os.Getpid()); err != nil || peak < resident {
		t.Errorf("peak of this process is %d bytes, error %v; it has had %d", peak, err, resident)
	}
}
