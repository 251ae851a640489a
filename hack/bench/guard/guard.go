// Package guard measures what must not get worse: what berth-scheduler costs against stock kube-scheduler in the same
// run, how often gangs are planned, and how well GPUs are packed. It holds each figure against the one in figures.yaml.
//
// Each scheduler runs in a process of its own, on an API in memory and a virtual clock. CPU is all that this process
// uses, the API included. The processes of stock and of Berth take turns, and a ratio is that of a pair. A plan that
// takes long does not pause on this clock, which does not advance while it is made.
package guard

import (
	"context"
	"errors"
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

// Hold measures figures, prints them and holds them against what is expected: a figure that is worse by more than its
// spread is an error. With update it takes them over instead. CPU profiles go to the folder if one is named.
func Hold(ctx context.Context, out io.Writer, chosen []Figure, update bool, profiles string) ([]figures.Result, error) {
	var names []string
	for _, f := range slices.Concat(Figures, OnRequest) {
		names = append(names, f.Name)
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
	for i := range chosen {
		f := &chosen[i]
		rig.Progress("measuring %s", f.Name)
		values, err := f.values(ctx, profiles)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		s := rig.SpreadOf(values)
		r := figures.Result{Name: f.Name, Unit: f.unit, Measured: s.Median, Least: s.Least, Most: s.Most}
		r.Judge(expected)
		results, rows, faults = append(results, r), append(rows, rowOf(&r)), append(faults, r.Fault())
	}
	if err := rig.Table(out, rows); err != nil || !update {
		return results, errors.Join(append(faults, err)...)
	}
	command := strings.Join(append([]string{"go run ./hack/bench"}, os.Args[1:]...), " ")
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
