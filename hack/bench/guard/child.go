package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"

	"berth.dev/berth/hack/bench/rig"
)

// ChildCommand is the hidden command of the benchmark that measures one scheduler for another process.
const ChildCommand = "child"

// Child is what one process measures.
type Child struct {
	Name, Scheduler string
	// Nodes is the size of the cluster where the name does not say it.
	Nodes int
	// Profiles is the folder for a CPU profile of the process, if it is to write one.
	Profiles string
}

// inProcess measures in a process of its own, so that heaps and caches do not mix.
func inProcess[T any](ctx context.Context, child Child, env ...string) (measured T, err error) {
	self, err := os.Executable()
	if err != nil {
		return measured, fmt.Errorf("finding this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, ChildCommand, child.Name, child.Scheduler,
		"--nodes="+strconv.Itoa(child.Nodes), "--profiles="+child.Profiles)
	cmd.Env = append(os.Environ(), env...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	output, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(output, &measured)
	}
	if err != nil {
		return measured, fmt.Errorf("measuring %s: %w: %s", child.Scheduler, err, strings.TrimSpace(complaints.String()))
	}
	return measured, nil
}

// rowsOf measures with each scheduler in turn and prints a row for each run. It returns what there is even if a run
// fails.
func rowsOf[T any](ctx context.Context, out io.Writer, child Child, contenders []contender, runs int,
	env ...string) ([]T, error) {
	var rows []T
	for run, c := range rig.InTurn(contenders, runs) {
		rig.Progress("measuring %s of %s, run %d", child.Name, c, run)
		child.Scheduler = string(c)
		row, err := inProcess[T](ctx, child, env...)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, rig.Table(out, rows)
}

// Measure measures in this process, which measures nothing else, and writes the result as JSON.
func (child *Child) Measure(out io.Writer) error {
	var profile bytes.Buffer
	if child.Profiles != "" {
		// It is not started on the virtual clock, on which its own goroutine could not wait.
		if err := pprof.StartCPUProfile(&profile); err != nil {
			return fmt.Errorf("profiling: %w", err)
		}
	}
	measured, err := child.measure(contender(child.Scheduler))
	if child.Profiles != "" {
		pprof.StopCPUProfile()
	}
	if err != nil {
		return err
	}
	if child.Profiles != "" {
		file := filepath.Join(child.Profiles, fmt.Sprintf("%s-%s.pprof", child.Name, child.Scheduler))
		if err := os.WriteFile(file, profile.Bytes(), 0o644); err != nil {
			return fmt.Errorf("writing the profile: %w", err)
		}
	}
	if err := json.NewEncoder(out).Encode(measured); err != nil {
		return fmt.Errorf("writing what was measured: %w", err)
	}
	return nil
}

func (child *Child) measure(c contender) (any, error) {
	switch child.Name {
	case Scale:
		return c.scale(child.Nodes)
	case LargeReplay:
		return c.replayLarge(child.Nodes)
	}
	for _, f := range slices.Concat(Figures, OnRequest) {
		if f.Name == child.Name {
			return f.measure(c)
		}
	}
	for i := range FieldLoads {
		if FieldLoads[i].Name == child.Name {
			return FieldLoads[i].measure(c)
		}
	}
	return nil, fmt.Errorf("nothing is measured under the name %q", child.Name)
}
