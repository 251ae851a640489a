package main

import (
	"bytes"
	"context"
	"fmt"

	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/process/rights"
	"berth.dev/berth/pkg/validate"
)

// validateShipped reads the shipped configuration.
func validateShipped(report *validate.Report) error {
	const path = "base/scheduler-config.yaml"
	data, err := manifests.Files.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the shipped configuration: %w", err)
	}
	return report.Read(bytes.NewReader(data), "manifests/"+path)
}

// askCluster adds to the report what the cluster of the flags says.
func (f validateFlags) askCluster(ctx context.Context, report *validate.Report) error {
	if len(report.Configurations()) == 0 && report.Has(validate.Error) && report.Objects == 0 {
		return nil // what is wrong is in the report
	}
	account, err := rights.ParseAccount(f.account)
	if err != nil {
		return badInput(fmt.Errorf("--account %w", err))
	}
	config, err := f.RESTConfig()
	if err != nil {
		return badInput(err)
	}
	return report.AskCluster(ctx, config, account)
}
