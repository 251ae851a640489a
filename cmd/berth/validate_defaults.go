package main

import (
	"errors"
	"fmt"
	"io"

	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/validate"
)

// printDefaults prints the configurations that were read as the scheduler completes them.
func printDefaults(out io.Writer, report *validate.Report) error {
	configurations := report.Configurations()
	if len(configurations) == 0 {
		return badInput(errors.New("there is no scheduler configuration in the files"))
	}
	for i, component := range configurations {
		text, err := validate.WithDefaults(&schedulerconfig.Configuration{Name: fmt.Sprintf("configuration %d", i+1), Component: component})
		if err != nil {
			return badInput(err)
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := out.Write(text); err != nil {
			return fmt.Errorf("printing the configuration: %w", err)
		}
	}
	return nil
}
