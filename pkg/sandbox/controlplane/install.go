package controlplane

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/sandbox"
)

// installTimeout bounds how long the API server may take to serve a CRD.
const installTimeout = 60 * time.Second

// install creates the objects of the shipped manifests that the scheduler needs: the CRDs, its ServiceAccount, its
// rights and admission policies. There is no Deployment: the sandbox runs the scheduler itself.
func (cp *controlPlane) install(ctx context.Context) error {
	if cp.opts.Bare {
		return nil
	}
	cp.say("installing the PodGroup CRD and the scheduler's rights")
	crds, err := fs.Glob(manifests.Files, "crd/*_*.yaml")
	if err != nil {
		return fmt.Errorf("listing the shipped CRDs: %w", err)
	}
	created, err := sandbox.CreateFiles(ctx, cp.admin, metav1.NamespaceSystem, manifests.Files,
		append(crds, "base/rbac.yaml", "base/users.yaml", "base/policy.yaml")...)
	if err != nil {
		return err
	}
	extensions, err := apiextensions.NewForConfig(cp.admin)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	for _, object := range created {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if err := waitEstablished(ctx, extensions, object.GetName()); err != nil {
			return err
		}
	}
	return nil
}

func waitEstablished(ctx context.Context, extensions apiextensions.Interface, name string) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, installTimeout, true,
		func(ctx context.Context) (bool, error) {
			crd, err := extensions.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			return apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established), nil
		})
	if err != nil {
		return fmt.Errorf("waiting for the API server to serve %s: %w", name, err)
	}
	return nil
}

// createNodes creates the nodes with their status, so that they are ready from the start.
func createNodes(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for _, node := range nodes {
		group.Go(func() error {
			if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("creating node %s: %w", node.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
