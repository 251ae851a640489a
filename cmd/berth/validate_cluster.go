package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/kubernetes"

	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/crd"
	"berth.dev/berth/pkg/rights"
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

// askCluster adds to the report which rights are missing for its configurations, and which fields of custom resources the
// API server drops.
func (f validateFlags) askCluster(ctx context.Context, report *validate.Report) error {
	configurations := report.Configurations()
	if len(configurations) == 0 {
		if report.Has(validate.Error) {
			return nil // what is wrong is in the report
		}
		return badInput(errors.New("there is no scheduler configuration in the files, so no rights to check"))
	}
	account, err := rights.ParseAccount(f.account)
	if err != nil {
		return badInput(fmt.Errorf("--account %w", err))
	}
	config, err := f.restConfig()
	if err != nil {
		return badInput(err)
	}
	// A check is a hundred small requests.
	config.QPS, config.Burst = 200, 200
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	var needs []rights.Need
	for _, c := range configurations {
		needs = append(needs, rights.For(c)...)
	}
	missing, err := rights.Check(ctx, client, needs, account)
	if err != nil {
		return err
	}
	name := "the account of the kubeconfig"
	if account != nil {
		name = account.User
	}
	report.Rights = &rights.Report{Account: name, Checked: rights.Count(needs), Missing: missing}
	report.Pruned, err = crd.Check(ctx, client.Discovery().RESTClient())
	return err
}
