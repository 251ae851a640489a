package simulation

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/pkg/plugins"
	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/process/schedulerconfig"
)

// Scheduler is a kube-scheduler with Berth's plugins on an in-memory API, with its informers.
type Scheduler struct {
	*scheduler.Scheduler
	stop func()
}

// NewScheduler builds the scheduler of a configuration on the API in memory. It works in real time as well as on a
// virtual clock, and looks at nodes in parallelism goroutines. What changes profiles does so before the informers
// start, whose handlers read them.
func NewScheduler(ctx context.Context, api *memapi.Server, config *schedulerconfig.Configuration, parallelism int32,
	changes ...func(*Scheduler)) (*Scheduler, error) {
	return Setup{API: api.RESTConfig(), Config: config, Parallelism: parallelism, Changes: changes}.Start(ctx)
}

// Setup says how a scheduler is built.
type Setup struct {
	// API leads to an API in memory.
	API         *rest.Config
	Config      *schedulerconfig.Configuration
	Parallelism int32
	// Plugins are those besides Berth's own.
	Plugins frameworkruntime.Registry
	// Changes are made before the informers start.
	Changes []func(*Scheduler)
	// Events makes the recorders of events by the names of profiles. Without it events are dropped.
	Events profile.RecorderFactory
	// Leader knows whether the scheduler leads. Without one it does.
	Leader informers.Leader
}

// Start builds the scheduler as the command does, starts its informers and waits until it has seen every object.
// Nothing is scheduled until ScheduleOne or Run is called. Stop must be called in the end.
func (s Setup) Start(ctx context.Context) (*Scheduler, error) {
	// The scheduler keeps and changes what it is given; the caller's configuration may be used for other runs.
	component := s.Config.Component.DeepCopy()
	registry := plugins.Registry()
	if err := registry.Merge(s.Plugins); err != nil {
		return nil, fmt.Errorf("registering plugins: %w", err)
	}
	if s.Events == nil {
		s.Events = func(string) events.EventRecorderLogger { return discardEvents{} }
	}
	restConfig, jsonConfig := rest.CopyConfig(s.API), rest.CopyConfig(s.API)
	restConfig.ContentType, restConfig.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+
		runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return nil, fmt.Errorf("making the API client: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfig(jsonConfig)
	if err != nil {
		return nil, fmt.Errorf("making the dynamic API client: %w", err)
	}
	factory := scheduler.NewInformerFactory(client, 0, nil)
	if s.Leader != nil {
		informers.Elect(factory, s.Leader)
	}
	dynamicInformers := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0)

	ctx, cancel := context.WithCancel(ctx)
	for name, factory := range registry {
		registry[name] = func(_ context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			return factory(ctx, args, handle)
		}
	}
	// What New starts for as long as its context lasts is there for metrics alone, and each of its flushes, a second
	// apart, tries some thousand channels: in virtual time that would be most of the work. So it ends when everything
	// is synced; Berth's own plugins have the context that lasts.
	starting, started := context.WithCancel(ctx)
	defer started()
	sched, err := scheduler.New(starting, process.SureBindings(client), factory, dynamicInformers,
		s.Events,
		scheduler.WithComponentConfigVersion(component.APIVersion),
		scheduler.WithKubeConfig(restConfig),
		scheduler.WithProfiles(component.Profiles...),
		scheduler.WithPercentageOfNodesToScore(component.PercentageOfNodesToScore),
		scheduler.WithFrameworkOutOfTreeRegistry(registry),
		scheduler.WithPodMaxBackoffSeconds(component.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(component.PodInitialBackoffSeconds),
		scheduler.WithExtenders(component.Extenders...),
		scheduler.WithParallelism(s.Parallelism),
	)
	if err == nil {
		err = plugins.CheckPoints(sched.Profiles)
	}
	if err != nil {
		cancel()
		return nil, s.Config.Invalid(err)
	}
	sched.SchedulingQueue, sched.FailureHandler = coscheduling.Listen(sched.Profiles, sched.SchedulingQueue,
		sched.FailureHandler)
	sched.Cache = coscheduling.Follow(sched.Profiles, sched.Cache, sched.WaitForHandlersSync)
	built := &Scheduler{Scheduler: sched, stop: func() {
		sched.SchedulingQueue.Close()
		cancel()
		factory.Shutdown()
		dynamicInformers.Shutdown()
		if err := sched.Profiles.Close(); err != nil {
			klog.Background().V(2).Info("Closing plugins failed", "err", err)
		}
	}}
	for _, change := range s.Changes {
		change(built)
	}
	factory.Start(ctx.Done())
	dynamicInformers.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	dynamicInformers.WaitForCacheSync(ctx.Done())
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		built.stop()
		return nil, fmt.Errorf("waiting for the informers: %w", err)
	}
	return built, nil
}

// Nodes brings the scheduler's snapshot up to date, which is the same for all profiles, and returns its nodes.
func (s *Scheduler) Nodes(ctx context.Context) ([]fwk.NodeInfo, error) {
	for _, profile := range s.Profiles {
		snapshot, ok := profile.SnapshotSharedLister().(*internalcache.Snapshot)
		if !ok {
			return nil, fmt.Errorf("the scheduler's snapshot is a %T", profile.SnapshotSharedLister())
		}
		if err := s.Cache.UpdateSnapshot(klog.FromContext(ctx), snapshot); err != nil {
			return nil, fmt.Errorf("taking the scheduler's snapshot: %w", err)
		}
		return snapshot.NodeInfos().List()
	}
	return nil, nil
}

// HeldBack is the status with which a plugin keeps the pod out of the queue, a success if none does.
func (s *Scheduler) HeldBack(pod *v1.Pod) *fwk.Status {
	profile := s.Profiles[pod.Spec.SchedulerName]
	if profile == nil {
		return nil
	}
	for _, plugin := range profile.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(context.Background(), pod); !status.IsSuccess() {
			return status
		}
	}
	return nil
}

// Stop ends every goroutine of the scheduler.
func (s *Scheduler) Stop() { s.stop() }

// discardEvents drops events: the handler of failures is told the same.
type discardEvents struct{}

// Eventf drops the event.
func (discardEvents) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

// WithLogger returns the recorder itself: there is nothing to log.
func (d discardEvents) WithLogger(klog.Logger) events.EventRecorderLogger { return d }
