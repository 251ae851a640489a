package main

import (
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/validate"
)

// printDefaults prints the configurations that were read as the scheduler completes them, in YAML unless JSON is asked
// for.
func printDefaults(out io.Writer, format outputFormat, report *validate.Report) error {
	configurations := report.Configurations()
	if len(configurations) == 0 {
		return badInput(errors.New("there is no scheduler configuration in the files"))
	}
	mediaType := runtime.ContentTypeYAML
	if format == outputJSON {
		mediaType = runtime.ContentTypeJSON
	}
	for i, component := range configurations {
		text, err := validate.WithDefaults(&schedulerconfig.Configuration{Name: fmt.Sprintf("configuration %d", i+1),
			Component: component}, mediaType)
		if err != nil {
			return badInput(err)
		}
		if i > 0 && format != outputJSON {
			text = append([]byte("---\n"), text...)
		}
		if _, err := out.Write(text); err != nil {
			return fmt.Errorf("printing the configuration: %w", err)
		}
	}
	return nil
}
