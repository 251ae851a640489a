package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/report"
	"berth.dev/berth/pkg/output"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/screen/command"
)

// statusConditionHolds is the exit status when a --fail-if condition holds.
const statusConditionHolds = 3

type compareFlags struct {
	input  replayInput
	a, b   string
	seeds  int
	failIf []string
	html   string
	format output.Format
}

func newCompareCommand() *cobra.Command {
	var flags compareFlags
	cmd := &cobra.Command{
		Use:   "compare --a CONFIG --b CONFIG",
		Short: "Replay the same input with two configurations and show what changes",
		Long: `compare replays the same input with two configurations and several seeds. First comes what B does better and worse
with every seed, then, metric by metric, the means, their range over the seeds and the differences.

` + inputHelp + `

Exit status: 0 when it ran to its end and no condition of --fail-if holds, 3 when one holds, 2 for a file or condition
that cannot be used, 1 for any other error.`,
		Example: `  # What the shipped profiles change against the default scheduler, as a table and as a page
  berth compare --a stock --b manifests/base/scheduler-config.yaml --nodes nodes.csv --jobs jobs.csv --html report.html

  # In a pipeline: no change of weights may cost more than 2% or leave more pods pending
  berth compare --a old.yaml --b new.yaml --dump cluster.dump --rebind --fail-if 'cost>+2%' --fail-if 'pending>0'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			silenceLogs()
			return runCompare(cmd.Context(), &flags, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags.input.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&flags.a, "a", schedulerconfig.Stock, "configuration A: a file, or stock for the default scheduler")
	f.StringVar(&flags.b, "b", "", "configuration B: a file, or stock")
	f.IntVar(&flags.seeds, "seeds", 3, "number of seeds, 1 to 1000")
	f.StringArrayVar(&flags.failIf, "fail-if", nil,
		"exit with status 3 if this change from A to B holds, such as cost>+2% or pending>0; may be repeated")
	f.StringVar(&flags.html, "html", "", "write the comparison as one self-contained page to this file")
	flags.format.AddTo(cmd)
	return cmd
}

// completeConditions offers each metric with either sign. The user types the bound.
func completeConditions(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var conditions []string
	for _, metric := range report.ConditionMetrics() {
		conditions = append(conditions, metric+">", metric+"<")
	}
	return conditions, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func runCompare(ctx context.Context, flags *compareFlags, out, progress io.Writer) error {
	if flags.b == "" {
		return badInput(errors.New("--b: name the configuration to compare with"))
	}
	if flags.seeds < 1 || flags.seeds > 1000 {
		return badInput(fmt.Errorf("--seeds: %d is not allowed; want 1 to 1000", flags.seeds))
	}
	if err := writable("html", flags.html); err != nil {
		return err
	}
	conditions := make([]report.Condition, len(flags.failIf))
	for i, text := range flags.failIf {
		var err error
		if conditions[i], err = report.ParseCondition(text); err == nil {
			err = conditions[i].MeasuredIn(flags.input.options.Mode)
		}
		if err != nil {
			return badInput(fmt.Errorf("--fail-if: %w", err))
		}
	}
	comparison, err := replayBoth(ctx, flags, progress)
	if err != nil {
		return err
	}
	if flags.html != "" {
		if err := writeFile(flags.html, func(w io.Writer) error { return report.WriteHTML(w, comparison) }); err != nil {
			return fmt.Errorf("writing the page: %w", err)
		}
	}
	if err := flags.format.Print(out, comparison, func(out io.Writer) error {
		return report.WriteTable(out, comparison)
	}); err != nil {
		return err
	}
	return checkConditions(conditions, comparison)
}

// replayBoth replays each seed with both configurations, one replay at a time and alternating between the two: CPU time
// is measured for the whole process, and other load on the machine affects both configurations alike.
func replayBoth(ctx context.Context, flags *compareFlags, progress io.Writer) (*report.Comparison, error) {
	input, err := flags.input.load()
	if err != nil {
		return nil, err
	}
	var sides [2]*schedulerconfig.Configuration
	for i, name := range []string{flags.a, flags.b} {
		if sides[i], err = loadConfiguration(name); err != nil {
			return nil, err
		}
	}
	var results [2][]*replayed.Result
	for n := range flags.seeds * len(sides) {
		options := flags.input.options
		options.Seed = uint64(n/len(sides)) + 1
		label := fmt.Sprintf("replay %d of %d", n+1, flags.seeds*len(sides))
		result, err := runReplay(ctx, sides[n%len(sides)], input, options, progress, label)
		if err != nil {
			return nil, err
		}
		results[n%len(sides)] = append(results[n%len(sides)], result)
	}
	return report.Compare(results[0], results[1]), nil
}

func checkConditions(conditions []report.Condition, comparison *report.Comparison) error {
	var holding []string
	for _, c := range conditions {
		if sentence := c.Check(comparison); sentence != "" {
			holding = append(holding, sentence)
		}
	}
	if len(holding) == 0 {
		return nil
	}
	return command.WithStatus(errors.New(strings.Join(holding, "; ")), statusConditionHolds)
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
