package controlplane

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/client/clientset/versioned"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	kwokclient "sigs.k8s.io/kwok/pkg/utils/client"
)

// startKubelets starts kwok, which plays the kubelets of all nodes.
func startKubelets(ctx context.Context, kubeconfig string) error {
	lives, err := allStages()
	if err != nil {
		return err
	}
	clients, err := kwokclient.NewClientset("", kubeconfig)
	if err != nil {
		return fmt.Errorf("making kwok's clients: %w", err)
	}
	restConfig, err := clients.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("making kwok's clients: %w", err)
	}
	// The clients that follow are made of the same configuration.
	restConfig.Wrap(retryWrites)
	restClient, restErr := rest.RESTClientFor(restConfig)
	typed, typedErr := kubernetes.NewForConfig(restConfig)
	kwok, kwokErr := versioned.NewForConfig(restConfig)
	dynamic, dynamicErr := clients.ToDynamicClient()
	mapper, mapperErr := clients.ToRESTMapper()
	if err := errors.Join(restErr, typedErr, kwokErr, dynamicErr, mapperErr); err != nil {
		return fmt.Errorf("making kwok's clients: %w", err)
	}
	controller, err := controllers.NewController(controllers.Config{
		Clock:         clock.RealClock{},
		DynamicClient: dynamic, RESTClient: restClient, RESTMapper: mapper,
		ImpersonatingDynamicClient: clients.ToImpersonatingDynamicClient(),
		ImpersonatingTypedClient:   clients.ToImpersonatingTypedClient(),
		TypedClient:                typed, TypedKwokClient: kwok,
		ManageAllNodes:           true,
		CIDR:                     "10.0.0.1/24",
		NodeIP:                   "10.0.0.1",
		LocalStages:              lives,
		PodPlayStageParallelism:  8,
		NodePlayStageParallelism: 4,
		NodeLeaseDurationSeconds: 40,
		NodeLeaseParallelism:     4,
		// The kubelet's own pods come by the watch; this is only the sync when a node appears.
		PodsOnNodeSyncParallelism: 1,
		ID:                        "berth-sandbox",
	})
	if err != nil {
		return fmt.Errorf("making kwok: %w", err)
	}
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("starting kwok: %w", err)
	}
	return nil
}
