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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"berth.dev/berth/hack/bench/guard/figures"
	"berth.dev/berth/hack/bench/rig"
)

// figuresFile has what is expected.
const figuresFile = "hack/bench/guard/figures.yaml"

// options are the flags.
type options struct {
	output string
	only   []string
	update bool
	// child is the benchmark that this process measures for another, of this contender.
	child, contender string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "guard:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var o options
	list := strings.Builder{}
	for _, b := range benchmarks {
		fmt.Fprintf(&list, "\n  %-16s %s", b.name, b.what)
	}
	cmd := &cobra.Command{
		Use:   "guard",
		Short: "Fail if scheduling has become more expensive, or packing worse",
		Long:  "guard measures these figures and holds them against those in " + figuresFile + ":" + list.String(),
		Example: `  # Everything, in one to two minutes
  make bench-guard

  # Gangs alone
  go run ./hack/bench/guard --only gangs,start

  # Accept what the memory is now
  go run ./hack/bench/guard --only memory --update

  # For a program
  go run ./hack/bench/guard --output json`,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.child == "" {
				return run(cmd.Context(), &o, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			s, err := take(o.child, contender(o.contender))
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(s)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.only, "only", nil, "measure these figures only")
	f.StringVarP(&o.output, "output", "o", "table", "how the results are printed: table or json")
	f.BoolVar(&o.update, "update", false, "write what is measured to the file, and hold it against what was there")
	f.StringVar(&o.child, "child", "", "")
	f.StringVar(&o.contender, "contender", "", "")
	_, _ = f.MarkHidden("child"), f.MarkHidden("contender")
	return cmd
}

func run(ctx context.Context, o *options, out, progress io.Writer) error {
	var names []string
	for _, b := range benchmarks {
		names = append(names, b.name)
	}
	for _, name := range o.only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--only: %q is not measured; want some of %s", name, strings.Join(names, ", "))
		}
	}
	if o.output != "table" && o.output != "json" {
		return fmt.Errorf("--output: %q is not allowed; want table or json", o.output)
	}
	file, err := os.ReadFile(figuresFile)
	if err != nil {
		return fmt.Errorf("reading what is expected: %w", err)
	}
	expected, err := figures.Parse(file, names)
	if err != nil {
		return fmt.Errorf("%s: %w", figuresFile, err)
	}
	session, err := rig.Begin()
	if err != nil {
		return err
	}
	var results []figures.Result
	var faults []error
	for _, b := range benchmarks {
		if len(o.only) > 0 && !slices.Contains(o.only, b.name) {
			continue
		}
		_, _ = fmt.Fprintln(progress, "measuring", b.name)
		values, err := b.measure(ctx, b.name)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		s := rig.SpreadOf(values)
		r := figures.Result{Name: b.name, Unit: b.unit, Measured: s.Median, Least: s.Least, Most: s.Most}
		r.Judge(expected)
		results, faults = append(results, r), append(faults, r.Fault())
	}
	if err := printResults(out, o.output, results); err != nil {
		return err
	}
	if err := session.End(progress, "", nil); err != nil {
		return err
	}
	if !o.update {
		return errors.Join(faults...)
	}
	command := strings.Join(append([]string{"go run ./hack/bench/guard"}, os.Args[1:]...), " ")
	figures.Update(expected, results, command, time.Now().UTC().Format(time.DateOnly))
	text := figures.Format(expected, names)
	if err := os.WriteFile(figuresFile, text, 0o644); err != nil {
		return fmt.Errorf("writing what is expected: %w", err)
	}
	return nil
}

func printResults(out io.Writer, format string, results []figures.Result) error {
	if format == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(results)
	}
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"figure", "unit", "median (least–most)", "expected", "allowed", ""})
	for _, r := range results {
		measured := fmt.Sprintf("%.4g", r.Measured)
		if r.Least != r.Most {
			measured += fmt.Sprintf(" (%.4g–%.4g)", r.Least, r.Most)
		}
		expected, allowed := fmt.Sprintf("%.4g", r.Expected), fmt.Sprintf("%.4g", r.Allowed)
		t.AppendRow(table.Row{r.Name, r.Unit, measured, expected, allowed, r.Verdict})
	}
	t.Render()
	return nil
}
