package rig

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOtherCores(t *testing.T) {
	t.Parallel()
	start := time.Unix(100, 0)
	before := load{start, 100 * time.Second, 25 * time.Second}
	after := func(machine time.Duration) load { return load{start.Add(10 * time.Second), machine, 37 * time.Second} }
	tests := []struct {
		name  string
		after load
		want  float64
	}{
		{"what is left of the machine's time is other work", after(120 * time.Second), 0.8},
		{"a machine that does nothing else", after(112 * time.Second), 0},
		{"rounding does not make it negative", after(111 * time.Second), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.after.otherCoresSince(before); got != tt.want {
				t.Errorf("got %g, want %g", got, tt.want)
			}
		})
	}
}

// processFolder is a /proc of processes by number, each with its parent and its times in hundredths of a second.
func processFolder(t *testing.T, processes map[int][5]int) string {
	t.Helper()
	dir := t.TempDir()
	for pid, p := range processes {
		if err := os.MkdirAll(filepath.Join(dir, fmt.Sprint(pid)), 0o700); err != nil {
			t.Fatal(err)
		}
		stat := fmt.Sprintf("%d (a) b) S %d 2 3 4 5 6 7 8 9 10 %d %d %d %d%s\n", pid, p[0], p[1], p[2], p[3], p[4],
			strings.Repeat(" 1", 37))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(pid), "stat"), []byte(stat), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTreeCPU(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		processes map[int][5]int
		want      time.Duration
		wantErr   string
	}{
		{name: "user and system time are added", processes: map[int][5]int{7: {1, 250, 50, 0, 0}}, want: 3 * time.Second},
		{name: "children that have ended count", processes: map[int][5]int{7: {1, 100, 0, 250, 50}}, want: 4 * time.Second},
		{name: "children of children count", processes: map[int][5]int{7: {1, 100, 0, 0, 0}, 8: {7, 100, 0, 0, 0},
			9: {8, 0, 200, 0, 0}},
			want: 4 * time.Second},
		{name: "parents and their other children do not count", processes: map[int][5]int{1: {0, 900, 0, 0, 0},
			7: {1, 100, 0, 0, 0}, 8: {1, 900, 0, 0, 0}},
			want: time.Second},
		{name: "processes that are each other's parents do not hang it", processes: map[int][5]int{7: {1, 100, 0, 0, 0},
			8: {9, 1, 0, 0, 0}, 9: {8, 1, 0, 0, 0}},
			want: time.Second},
		{name: "a process that is not there is an error", processes: map[int][5]int{8: {1, 1, 1, 1, 1}},
			wantErr: "no process 7"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := treeCPU(processFolder(t, tt.processes), 7)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got error %v, want one with %q", err, tt.wantErr)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got %v and error %v, want %v", got, err, tt.want)
			}
		})
	}
}

func TestSessionWritesWhatTheMachineDid(t *testing.T) {
	t.Parallel()
	s, err := Begin()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "figures.json")
	var out strings.Builder
	if err := s.End(&out, file, []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "busy with other work") {
		t.Errorf("printed %q, want how busy the machine was", out.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		CPUs       int      `json:"cpus"`
		Command    []string `json:"command"`
		OtherCores *float64 `json:"otherCores"`
		Results    []int    `json:"results"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.CPUs < 1 || len(got.Command) == 0 || got.OtherCores == nil || len(got.Results) != 2 {
		t.Errorf("the file has %s", text)
	}
}

func TestSessionSaysWhichFileItCannotWrite(t *testing.T) {
	t.Parallel()
	s, err := Begin()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "missing", "figures.json")
	if err := s.End(io.Discard, file, nil); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got error %v, want one with %s", err, file)
	}
}
