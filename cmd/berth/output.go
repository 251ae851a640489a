package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/output"
	"berth.dev/berth/pkg/progress"
	"berth.dev/berth/pkg/tables"
)

// outputFormat is the value of --output.
type outputFormat string

// Formats of --output.
const (
	outputTable outputFormat = "table"
	outputJSON  outputFormat = "json"
	outputYAML  outputFormat = "yaml"
)

func (f *outputFormat) String() string { return string(*f) }

// Type is what the help calls the value.
func (f *outputFormat) Type() string { return "format" }

// Set parses the flag's value.
func (f *outputFormat) Set(value string) error {
	if !slices.Contains(outputFormats, value) {
		return fmt.Errorf("must be one of %s", strings.Join(outputFormats, ", "))
	}
	*f = outputFormat(value)
	return nil
}

var outputFormats = []string{string(outputTable), string(outputJSON), string(outputYAML)}

func addOutputFlag(cmd *cobra.Command, format *outputFormat) {
	*format = outputTable
	var wide bool
	cmd.Flags().BoolVar(&wide, "wide", false, "show tables as wide as they are, with all columns")
	cmd.PreRun = func(cmd *cobra.Command, _ []string) { cmd.SetOut(tables.NewOutput(cmd.OutOrStdout(), wide)) }
	cmd.Flags().VarP(format, "output", "o", "what to print: table, json or yaml")
	if err := cmd.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions(outputFormats, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

// printValue prints a value as JSON or, with the same field names, as YAML. Tables are the callers' own.
func printValue(out io.Writer, format outputFormat, value any) error {
	if format == outputYAML {
		return output.WriteYAML(out, value)
	}
	return output.WriteJSON(out, value)
}

// writable finds out that a file cannot be written before the work for it is done.
func writable(flag, path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return badInput(fmt.Errorf("--%s: %s is a folder; must be a file", flag, path))
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return badInput(fmt.Errorf("--%s: %w", flag, err))
	}
	return nil
}

// stepPrinter returns a function that prints each step with the seconds since now.
func stepPrinter(out io.Writer) func(step string) {
	line, begin := progress.NewLine(out), time.Now()
	return func(step string) { line.Keep(fmt.Sprintf("%5.1fs  %s", time.Since(begin).Seconds(), step)) }
}

// silenceLogs keeps what the scheduler logs off the terminal: its answers are what counts, and a failure comes back as
// an error. Neither does it make a logger of its own then for each node that it looks at.
func silenceLogs() {
	klog.EnableContextualLogging(false)
	klog.SetLoggerWithOptions(klog.Logger{}, klog.ContextualLogger(true))
}
