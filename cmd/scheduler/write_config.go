package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	clientset "k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	berthconfig "berth.dev/berth/pkg/schedulerconfig"
)

// noCluster is the API server of a scheduler that is told of none. A connection to it is refused at once.
const noCluster = "https://127.0.0.1:1"

// configure makes the configuration of the process from the flags and the file. A scheduler that only writes its
// configuration takes no port, and needs no cluster.
func configure(ctx context.Context, opts *options.Options) (*schedulerserverconfig.Config, error) {
	if opts.WriteConfigTo == "" {
		if opts.ConfigFile != "" {
			// The options would say less of what is wrong with it.
			if _, err := loadComponent(ctx, opts); err != nil {
				return nil, err
			}
		}
		return opts.Config(ctx)
	}
	opts.SecureServing.BindPort = 0
	component, err := loadComponent(ctx, opts)
	if err != nil {
		return nil, err
	}
	reachable, err := namesCluster(opts.Master, component.ClientConnection.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if reachable {
		return opts.Config(ctx)
	}
	kubeconfig := &restclient.Config{Host: noCluster}
	client, err := clientset.NewForConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &schedulerserverconfig.Config{
		ComponentConfig:  *component,
		KubeConfig:       kubeconfig,
		EventBroadcaster: events.NewEventBroadcasterAdapterWithContext(ctx, client),
	}, nil
}

// loadComponent reads the configuration of the scheduler as the options do.
func loadComponent(ctx context.Context, opts *options.Options) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	if err := opts.ComponentGlobalsRegistry.SetFallback(); err != nil {
		return nil, fmt.Errorf("setting feature gates: %w", err)
	}
	if opts.ConfigFile == "" {
		opts.ApplyDeprecated()
		opts.ApplyLeaderElectionTo(opts.ComponentConfig)
		return opts.ComponentConfig, nil
	}
	component, err := options.LoadConfigFromFile(klog.FromContext(ctx), opts.ConfigFile)
	if err != nil {
		return nil, berthconfig.SayRenamed(err)
	}
	opts.ApplyLeaderElectionTo(component)
	if err := berthconfig.Validate(component); err != nil {
		return nil, err
	}
	return component, nil
}

// namesCluster reports whether the scheduler is told of a cluster: by its address, by a kubeconfig that is there, or by
// running in it.
func namesCluster(address, kubeconfig string) (bool, error) {
	if kubeconfig == "" {
		return address != "" || os.Getenv("KUBERNETES_SERVICE_HOST") != "", nil
	}
	_, err := os.Stat(kubeconfig)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return true, nil
}
