package main

import (
	"bytes"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"berth.dev/berth/manifests"
	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
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

// askCluster adds to the report which rights are missing for its configurations, and which fields of custom resources
// the API server drops; and for manifests, what nodes and PodGroups the cluster has.
func (f validateFlags) askCluster(ctx context.Context, report *validate.Report) error {
	configurations := report.Configurations()
	if len(configurations) == 0 && report.Has(validate.Error) && report.Objects == 0 {
		return nil // what is wrong is in the report
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
	if len(configurations) < report.Objects {
		if err := addCluster(ctx, config, client, report); err != nil {
			return err
		}
	}
	if len(configurations) > 0 {
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
	}
	report.Pruned, err = crd.Check(ctx, client.Discovery().RESTClient())
	return err
}

// addCluster reads what pods of manifests may refer to. PodGroups that are not served, or may not be listed, are none.
func addCluster(ctx context.Context, config *rest.Config, client kubernetes.Interface, report *validate.Report) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	names, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	list, err := names.Resource(schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups")).List(ctx,
		metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("listing podgroups: %w", err)
	}
	var groups []types.NamespacedName
	if err == nil {
		for i := range list.Items {
			groups = append(groups, types.NamespacedName{Namespace: list.Items[i].Namespace, Name: list.Items[i].Name})
		}
	}
	report.AddCluster(nodes.Items, groups)
	return nil
}
