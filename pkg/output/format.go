package output

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth.dev/berth/pkg/screen/tables"
)

// Format is the value of --output.
type Format string

// Values of --output.
const (
	Table Format = "table"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

func (f *Format) String() string { return string(*f) }

// Type is what the help calls the value.
func (f *Format) Type() string { return "format" }

// Set parses the flag's value.
func (f *Format) Set(value string) error {
	if !slices.Contains(formats, value) {
		return fmt.Errorf("must be one of %s", strings.Join(formats, ", "))
	}
	*f = Format(value)
	return nil
}

var formats = []string{string(Table), string(JSON), string(YAML)}

// AddTo adds --output, with the value table, and --wide to a command.
func (f *Format) AddTo(cmd *cobra.Command) {
	*f = Table
	var wide bool
	cmd.Flags().BoolVar(&wide, "wide", false, "show tables as wide as they are, with all columns")
	cmd.PreRun = func(cmd *cobra.Command, _ []string) { cmd.SetOut(tables.NewOutput(cmd.OutOrStdout(), wide)) }
	cmd.Flags().VarP(f, "output", "o", "what to print: table, json or yaml")
	if err := cmd.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

// Print prints the result of a command: as a table with the function, or the value as JSON or YAML.
func (f Format) Print(out io.Writer, value any, table func(io.Writer) error) error {
	if f == Table {
		return table(out)
	}
	return Write(out, f, value)
}
