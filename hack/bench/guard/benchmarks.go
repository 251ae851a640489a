package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/klog/v2"
)

// benchmark measures one figure, several times if it scatters.
type benchmark struct {
	name, unit, what string
	measure          func(ctx context.Context, name string) ([]float64, error)
}

// Describe is for the flag that chooses among the figures.
func (b benchmark) Describe() (name, description string) { return b.name, b.what }

const (
	againstStock = "× stock"
	// unallocated is what the allocation leaves of 100%: it shows better than the allocation how much more is wasted.
	unallocated = "% of GPUs idle"
)

var benchmarks = []benchmark{
	{"identical", againstStock, "CPU for a pod: single pods, all alike, on 2,000 nodes", ratios(7)},
	{"distinct", againstStock, "CPU for a pod: single pods, no two alike, on 2,000 nodes", ratios(7)},
	{"plain", againstStock, "CPU for a pod: pods without GPUs, on 500 nodes without GPUs", ratios(7)},
	{"gangs", againstStock, "CPU for a pod: 20 gangs of 32 on 2,000 nodes; with stock, pods without a gang", ratios(7)},
	{"start", againstStock, "CPU of a start with 63 gangs of 16 that wait, on 2,000 nodes; with stock, without them",
		ratios(7)},
	{"replay", againstStock, "CPU for a pod: replay of a queue of gangs and single pods; with stock, without gangs",
		ratios(7)},
	{"replay-plans", "plans a gang", "plans that are made in that replay for each gang that starts", plansPerGang},
	{"packing-cpu", unallocated, "what hack/bench/packing leaves in a family of work that needs much CPU",
		packing("8-GPU, much CPU, 30% CPU-only")},
	{"packing-shares", unallocated, "the same in a family with shares of GPUs",
		packing("8-GPU, shares and whole, 90% CPU-only")},
	{"packing-links", unallocated, "the same where some pods require links that few nodes have",
		packing("links: some require links", "--hard")},
	{"packing-drift", unallocated, "the same where the work has just changed",
		packing("drift: from much CPU to little", "--hard")},
	{"backlog", "cores", "CPU while 1,000 gangs of 8 wait on 1,000 full nodes and 10 pods end a second", ofBerth},
	{"backlog-pods", "cores", "the same while 5,000 single pods wait, all alike", ofBerth},
	// The heap is the same in each run.
	{"memory", againstStock, "heap for each of 2,000 nodes and 8,000 pods", ratios(1)},
}

// large take minutes, and are measured only by name.
var large = []benchmark{
	{"gangs-5000", againstStock, "only by name, CPU for a pod: start with 64 gangs of 64 that can run, on 5,000 nodes; " +
		"with stock, pods without a gang", ratios(3)},
	{"plain-5000", againstStock, "only by name, CPU for a pod: pods without GPUs, on 5,000 nodes without GPUs", ratios(7)},
	{"backlog-distinct", "cores", "only by name, backlog-pods where no two are alike", ofBerth},
	{"plugins", "µs", "only by name, CPU of our plugins for a pod without GPUs, on 500 nodes without GPUs; by a CPU profile",
		ofBerth},
	{"start-gated", againstStock, "only by name, CPU of the same start as start; with stock, the same pods behind a gate",
		ratios(7)},
	{"start-5000", againstStock, "only by name, CPU for a pod: start with 64 gangs of 64 where one can run, on 5,000 nodes; " +
		"with stock, which tries each pod, a quarter of these pods", ratios(1)},
}

// ratios compares pairs of processes; stock's is the first of a pair and the second in turn.
func ratios(pairs int) func(ctx context.Context, name string) ([]float64, error) {
	return func(ctx context.Context, name string) ([]float64, error) {
		values := make([]float64, pairs)
		for i := range values {
			cost := map[contender]float64{}
			for _, c := range [][]contender{{stock, berth}, {berth, stock}}[i%2] {
				s, err := sampleOf(ctx, name, c)
				if err != nil {
					return nil, err
				}
				cost[c] = s.Cost
			}
			values[i] = cost[berth] / cost[stock]
		}
		return values, nil
	}
}

// ofBerth measures Berth alone.
func ofBerth(ctx context.Context, name string) ([]float64, error) {
	values := make([]float64, 3)
	for i := range values {
		s, err := sampleOf(ctx, name, berth)
		if err != nil {
			return nil, err
		}
		values[i] = s.Cost
	}
	return values, nil
}

func plansPerGang(ctx context.Context, _ string) ([]float64, error) {
	s, err := sampleOf(ctx, "replay", berth)
	return []float64{s.PlansPerGang}, err
}

// These variables have a process measure one figure of one contender for another process.
const (
	childName      = "BERTH_GUARD_FIGURE"
	childContender = "BERTH_GUARD_CONTENDER"
	childProfiles  = "BERTH_GUARD_PROFILES"
	childScale     = "BERTH_GUARD_SCALE"
)

// child measures what the environment asks for, and reports whether it asks for anything. It prints a sample as JSON.
func child() bool {
	name := os.Getenv(childName)
	if name == "" {
		return false
	}
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	c := contender(os.Getenv(childContender))
	var measured any
	var err error
	nodes, _ := strconv.Atoi(os.Getenv(childScale))
	switch folder := os.Getenv(childProfiles); {
	case name == largeReplay:
		measured, err = profiled(folder, name, c, func() (replayRow, error) { return c.replayOf(nodes) })
	case nodes > 0:
		measured, err = c.scale(nodes)
	case name == "plugins":
		measured, err = pluginsCost(folder, c)
	default:
		measured, err = profiled(folder, name, c, func() (sample, error) { return take(name, c) })
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(measured)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// sampleOf measures a figure with one processor, because idle ones would collect garbage and look for work, in an amount
// that varies.
func sampleOf(ctx context.Context, name string, c contender) (s sample, err error) {
	err = spawn(ctx, name, c, &s, "GOMAXPROCS=1")
	return s, err
}

// spawn measures in a process of its own, so that heaps and caches do not mix, and stores what that prints in measured.
func spawn(ctx context.Context, name string, c contender, measured any, env ...string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), append(env, childName+"="+name, childContender+"="+string(c),
		childProfiles+"="+*profiles)...)
	output, err := outputOf(cmd)
	if err == nil {
		err = json.Unmarshal(output, measured)
	}
	if err != nil {
		return fmt.Errorf("measuring %s: %w", c, err)
	}
	return nil
}

// packing asks the benchmark of that name how many GPUs the rule that is installed leaves idle in a family.
func packing(family string, set ...string) func(ctx context.Context, name string) ([]float64, error) {
	return func(ctx context.Context, _ string) (_ []float64, err error) {
		folder, err := os.MkdirTemp("", "guard-")
		if err != nil {
			return nil, fmt.Errorf("making a folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
		file := filepath.Join(folder, "packing.json")
		cmd := exec.CommandContext(ctx, "go", append([]string{
			"run", "./hack/bench/packing", "--families", family, "--policies", "ours", "--json", file,
		}, set...)...)
		if _, err := outputOf(cmd); err != nil {
			return nil, fmt.Errorf("running the benchmark of packing: %w", err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the figures of packing: %w", err)
		}
		var outcome struct {
			Results []struct {
				Family string
				Mean   struct{ Allocated float64 }
			}
		}
		if err := json.Unmarshal(text, &outcome); err != nil {
			return nil, fmt.Errorf("reading the figures of packing: %w", err)
		}
		for _, r := range outcome.Results {
			// The name of another family may contain that of this one.
			if r.Family == family {
				return []float64{100 * (1 - r.Mean.Allocated)}, nil
			}
		}
		return nil, fmt.Errorf("reading the figures of packing: no family %q is among them", family)
	}
}

// outputOf runs a command; what it says as it fails is in the error.
func outputOf(cmd *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return output, nil
}
