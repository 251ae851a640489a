package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// clockEnv names, to a process that was built with such a clock, the file that says how far its wall clock is ahead.
const clockEnv = "BERTH_CHAOS_CLOCK"

//go:embed _time/steps.go
var steps []byte

// A static binary takes the time from the kernel, and all processes share the kernel's clock. So the package time of
// the processes under test is another one: before each reading of the wall clock it adds what a file says.
const (
	readsClock = "\tsec, nsec, mono := runtimeNow()\n"
	stepsIt    = "\tsec, nsec = stepped(sec, nsec)\n"
)

// otherTime writes a package time whose wall clock can be stepped to dir, and what go build needs to take it for
// -overlay.
func otherTime(ctx context.Context, dir string) (overlay string, err error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("asking for Go's own code: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", fmt.Errorf("reading Go's package time: %w", err)
	}
	if n := bytes.Count(source, []byte(readsClock)); n != 1 {
		return "", fmt.Errorf(
			"changing %s: it has the line %q %d times instead of once; this version of Go needs another change", original,
			readsClock, n)
	}
	changed, added, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "steps.go"),
		filepath.Join(dir, "overlay.json")
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed,
		filepath.Join(filepath.Dir(original), "steps.go"): added}})
	if err == nil {
		source = bytes.Replace(source, []byte(readsClock), []byte(readsClock+stepsIt), 1)
		err = errors.Join(os.WriteFile(changed, source, 0o600), os.WriteFile(added, steps, 0o600),
			os.WriteFile(overlay, replaced, 0o600))
	}
	if err != nil {
		return "", fmt.Errorf("writing another package time: %w", err)
	}
	return overlay, nil
}

// buildClocks builds berth and the scheduler with clocks that can be stepped, and returns berth's path.
func buildClocks(ctx context.Context, dir string, out io.Writer) (string, error) {
	overlay, err := otherTime(ctx, dir)
	if err != nil {
		return "", err
	}
	module, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("asking for the code to build: %w", err)
	}
	_, _ = fmt.Fprintln(out,
		"Building a control plane and a scheduler whose clocks can be stepped. The first time takes as long as a "+
			"first build.")
	binaries := filepath.Join(dir, "bin")
	build := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", filepath.Dir(string(module)), "berth",
		"scheduler", "BIN="+binaries, "GOFLAGS=-overlay="+overlay)
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building with another package time: %w: %s", err, said)
	}
	return filepath.Join(binaries, "berth"), nil
}

// clocks are those of a cluster that can be stepped: the scheduler's, and the one that etcd, the API server, the
// controllers and the kubelets share.
type clocks struct{ scheduler, controlPlane clock }

// newClocks starts clocks with the machine's time. The control plane inherits its clock from this process, whose own is
// another.
func newClocks(dir string) (clocks, error) {
	c := clocks{clock{filepath.Join(dir, "clock-of-scheduler")}, clock{filepath.Join(dir, "clock-of-control-plane")}}
	err := errors.Join(c.scheduler.set(0), c.controlPlane.set(0), os.Setenv(clockEnv, c.controlPlane.path))
	return c, err
}

// clock is the wall clock of some processes, in a file.
type clock struct{ path string }

// set puts the clock ahead of the machine's. A process sees it at once.
func (c clock) set(ahead time.Duration) error {
	file, err := os.OpenFile(c.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("setting a clock: %w", err)
	}
	_, err = file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(ahead)), 0) //nolint:gosec // never negative
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("setting a clock: %w", err)
	}
	return nil
}

// steppedClock steps a clock forward by a second to an hour, then back by a part of that, or by all of it, where it
// stays. It is never behind the machine's, as certificates are not valid before they were made.
func steppedClock(of func(*cluster) clock) func(context.Context, *cluster, *rand.Rand) error {
	return func(ctx context.Context, c *cluster, random *rand.Rand) error {
		ahead := time.Duration(math.Exp(random.Float64()*math.Log(3600)) * float64(time.Second))
		if err := of(c).set(ahead); err != nil {
			return err
		}
		pause(ctx, time.Second+time.Duration(random.IntN(4000))*time.Millisecond)
		left := time.Duration(0)
		if random.IntN(2) == 0 {
			left = time.Duration(random.Float64() * float64(ahead))
		}
		return errors.Join(of(c).set(left), ctx.Err())
	}
}
