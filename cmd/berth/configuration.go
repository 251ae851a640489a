package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"berth.dev/berth/pkg/cluster/access"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/screen/command"
	"berth.dev/berth/pkg/validate"
)

// running reads the configuration that the cluster's scheduler runs with. If it cannot be found, running prints a
// warning and reads the shipped one.
func (f clusterFlags) running(ctx context.Context, warnings io.Writer) (*schedulerconfig.Configuration, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	found, err := access.ConfigurationOf(ctx, config, f.SandboxFolders())
	if errors.Is(err, access.ErrNone) && !access.Unreachable(err) {
		return shippedInstead(warnings, err)
	}
	if err != nil {
		return nil, err
	}
	configuration, err := schedulerconfig.Parse(found.Name, found.Content)
	return configuration, badInput(err)
}

// shippedInstead reads the shipped configuration, with a warning that says why.
func shippedInstead(warnings io.Writer, why error) (*schedulerconfig.Configuration, error) {
	fmt.Fprintf(warnings, "warning: %s; using the shipped profiles (--scheduler-config names others)\n",
		command.OneLine(why))
	return schedulerconfig.Shipped()
}

// loadConfiguration reads a scheduler configuration; an empty name means the shipped profiles. A configuration that the
// scheduler would not start with, or that berth validate finds an error in, is an error.
func loadConfiguration(nameOrPath string) (*schedulerconfig.Configuration, error) {
	switch nameOrPath {
	case "":
		return schedulerconfig.Shipped()
	case schedulerconfig.Stock:
		return schedulerconfig.Load(schedulerconfig.Stock)
	}
	file, err := os.Open(nameOrPath)
	if err != nil {
		return nil, badInput(fmt.Errorf("reading the scheduler configuration: %w", err))
	}
	defer func() { _ = file.Close() }()
	data, err := schedulerconfig.ReadFile(file, nameOrPath)
	if err != nil {
		return nil, badInput(err)
	}
	configuration, err := schedulerconfig.Parse(nameOrPath, data)
	if fault := firstFault(nameOrPath, data); fault != nil {
		// Unlike the scheduler's own errors, these have line numbers.
		err = fault
	}
	return configuration, badInput(err)
}

// profileNames are the names that pods give in spec.schedulerName.
func profileNames(configuration *schedulerconfig.Configuration) (names []string) {
	for i := range configuration.Component.Profiles {
		names = append(names, configuration.Component.Profiles[i].SchedulerName)
	}
	return names
}

// firstFault is the first error that validate finds in a configuration.
func firstFault(path string, data []byte) error {
	report := &validate.Report{}
	if err := report.Read(bytes.NewReader(data), path); err != nil {
		return err
	}
	report.Finish()
	for _, f := range report.Findings {
		if f.Severity == validate.Error {
			return fmt.Errorf("%s:%d: %s", f.File, max(f.Line, 1), f.Message)
		}
	}
	return nil
}
