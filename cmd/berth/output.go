package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// outputFormat is the value of --output.
type outputFormat string

// Formats of --output.
const (
	outputTable outputFormat = "table"
	outputJSON  outputFormat = "json"
)

func (f *outputFormat) String() string { return string(*f) }

// Type is what the help calls the value.
func (f *outputFormat) Type() string { return "format" }

// Set parses the flag's value.
func (f *outputFormat) Set(value string) error {
	switch outputFormat(value) {
	case outputTable, outputJSON:
		*f = outputFormat(value)
		return nil
	}
	return fmt.Errorf("must be one of %s", strings.Join(outputFormats, ", "))
}

var outputFormats = []string{string(outputTable), string(outputJSON)}

func addOutputFlag(cmd *cobra.Command, format *outputFormat) {
	*format = outputTable
	cmd.Flags().VarP(format, "output", "o", "what to print: "+strings.Join(outputFormats, " or "))
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputFormats, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

func printJSON(out io.Writer, value any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value); err != nil {
		return fmt.Errorf("printing JSON: %w", err)
	}
	return nil
}

// stepPrinter returns a function that prints each step with the seconds since now.
func stepPrinter(out io.Writer) func(step string) {
	begin := time.Now()
	return func(step string) { fmt.Fprintf(out, "%5.1fs  %s\n", time.Since(begin).Seconds(), step) }
}
