package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/progress"
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
	cmd.Flags().VarP(format, "output", "o", "what to print: table, json or yaml")
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputFormats, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

// printValue prints a value as JSON or, with the same field names, as YAML. Tables are the callers' own.
func printValue(out io.Writer, format outputFormat, value any) error {
	if format == outputYAML {
		data, err := yaml.Marshal(value)
		if err == nil {
			_, err = out.Write(data)
		}
		if err != nil {
			return fmt.Errorf("printing YAML: %w", err)
		}
		return nil
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value); err != nil {
		return fmt.Errorf("printing JSON: %w", err)
	}
	return nil
}

// stepPrinter returns a function that prints each step with the seconds since now.
func stepPrinter(out io.Writer) func(step string) {
	line, begin := progress.NewLine(out), time.Now()
	return func(step string) { line.Keep(fmt.Sprintf("%5.1fs  %s", time.Since(begin).Seconds(), step)) }
}

// quietly keeps what the scheduler logs off the terminal: its answers are what counts, and a failure comes back as an error.
// Neither does it make a logger of its own then for each node that it looks at.
func quietly() {
	klog.EnableContextualLogging(false)
	klog.SetLoggerWithOptions(klog.Logger{}, klog.ContextualLogger(true))
}
