package main

import (
	"context"
	"fmt"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	clientset "k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"

	"berth.dev/berth/pkg/plugins"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/informers"
)

// setup makes the scheduler that the flags and the configuration ask for, as app.Setup does, with a client that writes
// only while this replica leads, and that knows whether a binding was done. app.Setup makes its own clients.
func setup(ctx context.Context, opts *options.Options) (*schedulerserverconfig.CompletedConfig, *scheduler.Scheduler,
	error) {
	component, err := latest.Default()
	if err != nil {
		return nil, nil, fmt.Errorf("making the default configuration: %w", err)
	}
	opts.ComponentConfig = component
	if errs := opts.Validate(); len(errs) > 0 {
		return nil, nil, utilerrors.NewAggregate(errs)
	}
	name := opts.InformerName
	// The factory that is made here is not used, and must not take the names of the metrics.
	opts.InformerName = nil
	config, err := configure(ctx, opts)
	opts.InformerName = name
	if err != nil {
		return nil, nil, err
	}
	fence := fenceIn(config)
	if config.Client, err = newWriter(config.KubeConfig); err != nil {
		return nil, nil, err
	}
	reader, err := newClient(config.KubeConfig)
	if err != nil {
		return nil, nil, err
	}
	config.InformerFactory = scheduler.NewInformerFactory(reader, 0, name)
	if fence != nil {
		informers.Elect(config.InformerFactory, fence)
	}
	completed := config.Complete()
	return build(ctx, opts, &completed)
}

// fenceIn keeps the clients of the scheduler and of its plugins from writing while another replica may lead. The lock
// has its own client already. It returns nil where there is no leader election.
func fenceIn(config *schedulerserverconfig.Config) *process.Fence {
	if config.LeaderElection == nil {
		return nil
	}
	f := process.NewFence(config.LeaderElection.RenewDeadline)
	config.LeaderElection.Lock = f.Lock(config.LeaderElection.Lock)
	config.KubeConfig = f.Guarded(config.KubeConfig)
	return f
}

// build makes the scheduler, and logs or writes its configuration with all defaults.
func build(
	ctx context.Context, opts *options.Options, completed *schedulerserverconfig.CompletedConfig,
) (*schedulerserverconfig.CompletedConfig, *scheduler.Scheduler, error) {
	component := &completed.ComponentConfig
	var profiles []schedulerconfig.KubeSchedulerProfile
	sched, err := scheduler.New(ctx, completed.Client, completed.InformerFactory, completed.DynInformerFactory,
		func(name string) events.EventRecorderLogger { return completed.EventBroadcaster.NewRecorder(name) },
		scheduler.WithComponentConfigVersion(component.APIVersion),
		scheduler.WithKubeConfig(completed.KubeConfig),
		scheduler.WithProfiles(component.Profiles...),
		scheduler.WithExtenders(component.Extenders...),
		scheduler.WithFrameworkOutOfTreeRegistry(plugins.Registry()),
		scheduler.WithParallelism(component.Parallelism),
		scheduler.WithPercentageOfNodesToScore(component.PercentageOfNodesToScore),
		scheduler.WithPodInitialBackoffSeconds(component.PodInitialBackoffSeconds),
		scheduler.WithPodMaxBackoffSeconds(component.PodMaxBackoffSeconds),
		scheduler.WithPodMaxInUnschedulablePodsDuration(completed.PodMaxInUnschedulablePodsDuration),
		scheduler.WithBuildFrameworkCapturer(func(p schedulerconfig.KubeSchedulerProfile) { profiles = append(profiles, p) }),
	)
	if err != nil {
		return nil, nil, err
	}
	if err := plugins.CheckPoints(sched.Profiles); err != nil {
		return nil, nil, err //nolint:wrapcheck // it says what to write
	}
	// Where the configuration is to be written, this ends the process.
	if err := options.LogOrWriteConfig(klog.FromContext(ctx), opts.WriteConfigTo, component, profiles); err != nil {
		return nil, nil, fmt.Errorf("writing the configuration: %w", err)
	}
	return completed, sched, nil
}

// newWriter makes the client by which the scheduler and its plugins write.
func newWriter(config *restclient.Config) (clientset.Interface, error) {
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	return process.SureBindings(client), nil
}

func newClient(config *restclient.Config) (clientset.Interface, error) {
	client, err := clientset.NewForConfig(restclient.AddUserAgent(config, "scheduler"))
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return client, nil
}
