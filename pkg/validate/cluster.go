package validate

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/process/crd"
	"berth.dev/berth/pkg/process/rights"
)

// AskCluster adds to the report the rights that the configurations need and the account does not have, and the fields
// of custom resources that the API server drops. For manifests it adds the nodes and PodGroups of the cluster. A nil
// account is that of the kubeconfig.
func (r *Report) AskCluster(ctx context.Context, config *rest.Config, account *rights.Account) error {
	configurations := r.Configurations()
	// A check is a hundred small requests.
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 200, 200
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if len(configurations) < r.Objects {
		if err := r.readCluster(ctx, config, client); err != nil {
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
		r.Rights = &rights.Report{Account: name, Checked: rights.Count(needs), Missing: missing}
	}
	r.Pruned, err = crd.Check(ctx, client.Discovery().RESTClient())
	return err
}

// readCluster reads the nodes and PodGroups to which pods of manifests may refer. PodGroups need not be readable.
func (r *Report) readCluster(ctx context.Context, config *rest.Config, client kubernetes.Interface) error {
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
	r.AddCluster(nodes.Items, groups)
	return nil
}
