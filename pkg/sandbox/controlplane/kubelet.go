package controlplane

import (
	"context"
	_ "embed"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/kustomize/stage/node/fast"
	heartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/client/clientset/versioned"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	kwokclient "sigs.k8s.io/kwok/pkg/utils/client"
)

//go:embed stages/pod-complete.yaml
var podComplete string

// startKubelets starts kwok, which plays the kubelets of all nodes: pods run as soon as they are bound, Job pods
// finish, deleted pods go away, nodes renew their leases.
func startKubelets(ctx context.Context, kubeconfig string) error {
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, text := range []string{
		fast.DefaultNodeInit, heartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady, podfast.DefaultPodDelete, podComplete,
	} {
		stage, err := config.UnmarshalWithType[*internalversion.Stage](text)
		if err != nil {
			return fmt.Errorf("decoding a kwok stage: %w", err)
		}
		stages[stage.Spec.ResourceRef] = append(stages[stage.Spec.ResourceRef], stage)
	}
	clients, err := kwokclient.NewClientset("", kubeconfig)
	if err != nil {
		return fmt.Errorf("making kwok's clients: %w", err)
	}
	restConfig, err := clients.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("making kwok's clients: %w", err)
	}
	restClient, err := rest.RESTClientFor(restConfig)
	if err != nil {
		return fmt.Errorf("making kwok's clients: %w", err)
	}
	typed, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return fmt.Errorf("making kwok's clients: %w", err)
	}
	kwok, err := versioned.NewForConfig(restConfig)
	if err != nil {
		return fmt.Errorf("making kwok's clients: %w", err)
	}
	dynamic, err := clients.ToDynamicClient()
	if err != nil {
		return fmt.Errorf("making kwok's clients: %w", err)
	}
	mapper, err := clients.ToRESTMapper()
	if err != nil {
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
		LocalStages:              stages,
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
