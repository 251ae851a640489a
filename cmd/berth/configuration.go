package main

import (
	"fmt"
	"os"

	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/validate"
)

// loadConfiguration reads a scheduler configuration, nameless the shipped profiles, and refuses one that the scheduler would not
// start with or that is wrong in another way, before work is begun with it.
func loadConfiguration(nameOrPath string) (*schedulerconfig.Configuration, error) {
	if nameOrPath == "" {
		return schedulerconfig.Shipped()
	}
	configuration, err := schedulerconfig.Load(nameOrPath)
	if fault := firstFault(nameOrPath); fault != nil {
		// The scheduler itself knows no lines.
		err = fault
	}
	return configuration, badInput(err)
}

// firstFault is the first error that validate finds in a file. A file that cannot be read has none.
func firstFault(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return nil // whoever reads the file for its content says so
	}
	defer file.Close()
	report := &validate.Report{}
	if err := report.Read(file, path); err != nil {
		return nil // as above
	}
	report.Finish()
	for _, f := range report.Findings {
		if f.Severity == validate.Error {
			return fmt.Errorf("%s:%d: %s", f.File, max(f.Line, 1), f.Message)
		}
	}
	return nil
}
