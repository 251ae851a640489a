// Command guard measures in one to two minutes what must not get worse: what berth-scheduler costs against stock
// kube-scheduler in the same run, how often gangs are planned, and how well GPUs are packed. It holds each figure
// against the one in figures.yaml and fails if it is worse by more than its spread.
//
// Each scheduler runs in a process of its own, on an API in memory and a virtual clock. CPU is all that this process
// uses, the API included. The processes of stock and of Berth take turns, and a ratio is that of a pair. A plan that
// takes long does not pause on this clock, which does not advance while it is made.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/hack/bench/guard/figures"
	"berth.dev/berth/hack/bench/rig"
)

// figuresFile has what is expected.
const figuresFile = "hack/bench/guard/figures.yaml"

var (
	all     = slices.Concat(benchmarks, large)
	only    = rig.Some("only", all, "measure these figures only")
	update  = flag.Bool("update", false, "write what is measured to the file, and hold it against what was there")
	scale   = flag.Int("scale", 0, "measure instead what a cluster of this many nodes and ten times as many pods takes")
	replays = flag.Int("replay", 0, "measure instead a replay of six hours on this many nodes, with ten times as many pods")
	// profiles is a folder.
	profiles = flag.String("profiles", "", "write a CPU profile of the last run of each scheduler to this folder")
)

func main() {
	if child() {
		return
	}
	rig.Main(`measures these figures and holds them against those in `+figuresFile+`.

  # Everything, in one to two minutes
  make bench-guard

  # What takes minutes is measured only by name
  go run ./hack/bench/guard --only gangs-5000

  # Where the time goes
  go run ./hack/bench/guard --only backlog --profiles /tmp && go tool pprof -top /tmp/backlog-berth.pprof

  # What a large cluster takes; 15,000 nodes and 150,000 pods need 5 GiB and two minutes
  go run ./hack/bench/guard --scale 15000

  # What a replay of a large cluster takes
  go run ./hack/bench/guard --replay 1500

  # Gangs alone
  go run ./hack/bench/guard --only gangs,start

  # Accept what the memory is now
  go run ./hack/bench/guard --only memory --update

  # For a program
  go run ./hack/bench/guard --json guard.json`, bench)
}

func bench(ctx context.Context, out io.Writer) (any, error) {
	if *scale > 0 {
		return scales(ctx, out, *scale)
	}
	if *replays > 0 {
		return replayLarge(ctx, out, *replays)
	}
	var names []string
	for _, b := range all {
		names = append(names, b.name)
	}
	file, err := os.ReadFile(figuresFile)
	if err != nil {
		return nil, fmt.Errorf("reading what is expected: %w", err)
	}
	expected, err := figures.Parse(file, names)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", figuresFile, err)
	}
	var results []figures.Result
	var rows []row
	var faults []error
	chosen := *only
	if len(chosen) == len(all) {
		chosen = benchmarks
	}
	for _, b := range chosen {
		rig.Progress("measuring %s", b.name)
		values, err := b.measure(ctx, b.name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.name, err)
		}
		s := rig.SpreadOf(values)
		r := figures.Result{Name: b.name, Unit: b.unit, Measured: s.Median, Least: s.Least, Most: s.Most}
		r.Judge(expected)
		results, rows, faults = append(results, r), append(rows, rowOf(&r)), append(faults, r.Fault())
	}
	if err := rig.Table(out, rows); err != nil || !*update {
		return results, errors.Join(append(faults, err)...)
	}
	command := strings.Join(append([]string{"go run ./hack/bench/guard"}, os.Args[1:]...), " ")
	figures.Update(expected, results, command, time.Now().UTC().Format(time.DateOnly))
	if err := os.WriteFile(figuresFile, figures.Format(expected, names), 0o644); err != nil {
		return results, fmt.Errorf("writing what is expected: %w", err)
	}
	return results, nil
}

// row is a result as it is printed.
type row struct {
	Figure   string          `row:"figure"`
	Unit     string          `row:"unit"`
	Measured string          `row:"median (least–most)"`
	Expected string          `row:"expected"`
	Allowed  string          `row:"allowed"`
	Verdict  figures.Verdict `row:""`
}

func rowOf(r *figures.Result) row {
	text := func(v float64) string { return fmt.Sprintf("%.4g", v) }
	measured := text(r.Measured)
	if r.Least != r.Most {
		measured += fmt.Sprintf(" (%s–%s)", text(r.Least), text(r.Most))
	}
	return row{r.Name, r.Unit, measured, text(r.Expected), text(r.Allowed), r.Verdict}
}
