package simulation

import (
	"context"
	"fmt"
	"maps"

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
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/plugins"
	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/process/schedulerconfig"
)

// Setup says which scheduler runs in a world.
type Setup struct {
	Config *schedulerconfig.Configuration
	// Parallelism is in how many goroutines nodes are looked at.
	Parallelism int32
	// API leads to the world's API, by default directly.
	API *rest.Config
	// Plugins are those besides Berth's own.
	Plugins frameworkruntime.Registry
	// Events makes the recorders of events by the names of profiles. Without it events are dropped.
	Events profile.RecorderFactory
	// Leader knows whether the scheduler leads. Without one it does.
	Leader informers.Leader
	// Logs lets it log.
	Logs bool
}

// Start builds the scheduler as the command does, starts its informers and waits until it has seen every object.
// Changes of its profiles are made before the informers start, whose handlers read them. Nothing is scheduled until Run
// or ScheduleOne is called. Stop must be called in the end. It works in real time as well as on a virtual clock.
func (w *World) Start(s Setup, changes ...func()) error {
	// The scheduler keeps and changes what it is given; the caller's configuration may be used for other runs.
	component := s.Config.Component.DeepCopy()
	registry := plugins.Registry()
	if err := registry.Merge(s.Plugins); err != nil {
		return fmt.Errorf("registering plugins: %w", err)
	}
	if s.Events == nil {
		s.Events = func(string) events.EventRecorderLogger { return discardEvents{} }
	}
	if s.API == nil {
		s.API = w.API.RESTConfig()
	}
	restConfig, jsonConfig := rest.CopyConfig(s.API), rest.CopyConfig(s.API)
	restConfig.ContentType, restConfig.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+
		runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return fmt.Errorf("making the API client: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfig(jsonConfig)
	if err != nil {
		return fmt.Errorf("making the dynamic API client: %w", err)
	}
	factory := scheduler.NewInformerFactory(client, 0, nil)
	if s.Leader != nil {
		informers.Elect(factory, s.Leader)
	}
	dynamicInformers := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0)

	ctx, cancel := context.WithCancel(context.Background())
	if !s.Logs {
		// Names and values are added to a logger for every node and plugin, unless it is this one, which logs nothing.
		ctx = klog.NewContext(ctx, klog.Logger{})
	}
	w.Plugins = map[string]fwk.Plugin{}
	for name, factory := range registry {
		registry[name] = func(_ context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			plugin, err := factory(ctx, args, handle)
			w.Plugins[name] = plugin
			return plugin, err //nolint:wrapcheck // it is the caller's
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
		return s.Config.Invalid(err)
	}
	sched.SchedulingQueue, sched.FailureHandler = coscheduling.Listen(sched.Profiles, sched.SchedulingQueue,
		sched.FailureHandler)
	sched.Cache = coscheduling.Follow(sched.Profiles, sched.Cache, sched.WaitForHandlersSync)
	w.Scheduler, w.AllNodes, w.ctx, w.cancel, w.done = sched, maps.Clone(sched.Profiles), ctx, cancel, nil
	w.informers = []interface{ Shutdown() }{factory, dynamicInformers}
	candidates.Wrap(sched.Profiles)
	for _, change := range changes {
		change()
	}
	factory.Start(ctx.Done())
	dynamicInformers.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	dynamicInformers.WaitForCacheSync(ctx.Done())
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		w.Stop()
		return fmt.Errorf("waiting for the informers: %w", err)
	}
	return nil
}

// Run lets the scheduler schedule what waits, until Stop.
func (w *World) Run() {
	w.SchedulingQueue.Run(klog.FromContext(w.ctx))
	w.done = make(chan struct{})
	go func() {
		defer close(w.done)
		for w.ctx.Err() == nil {
			w.ScheduleOne(w.ctx)
		}
	}()
}

// Stopped is closed when the scheduler is to stop.
func (w *World) Stopped() <-chan struct{} { return w.ctx.Done() }

// Stop ends every goroutine of the scheduler, if there is one, and forgets it.
func (w *World) Stop() {
	if w.Scheduler == nil {
		return
	}
	w.SchedulingQueue.Close()
	w.cancel()
	for _, factory := range w.informers {
		factory.Shutdown()
	}
	if err := w.Profiles.Close(); err != nil {
		klog.Background().V(2).Info("Closing plugins failed", "err", err)
	}
	if w.done != nil {
		<-w.done
	}
	w.Scheduler, w.AllNodes, w.Plugins, w.informers = nil, nil, nil, nil
}

// Nodes brings the scheduler's snapshot up to date, which is the same for all profiles, and returns its nodes.
func (w *World) Nodes() ([]fwk.NodeInfo, error) {
	for _, profile := range w.Profiles {
		snapshot, ok := profile.SnapshotSharedLister().(*internalcache.Snapshot)
		if !ok {
			return nil, fmt.Errorf("the scheduler's snapshot is a %T", profile.SnapshotSharedLister())
		}
		if err := w.Cache.UpdateSnapshot(klog.FromContext(w.ctx), snapshot); err != nil {
			return nil, fmt.Errorf("taking the scheduler's snapshot: %w", err)
		}
		return snapshot.NodeInfos().List()
	}
	return nil, nil
}

// HeldBack is the status with which a plugin keeps the pod out of the queue, a success if none does.
func (w *World) HeldBack(pod *v1.Pod) *fwk.Status {
	profile := w.Profiles[pod.Spec.SchedulerName]
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

// FilterWithout is what the filters of a profile say of a node if those of its pods were gone that leave. The state is
// that of a cycle of the pod after PreFilter; it is not changed.
func FilterWithout(ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *v1.Pod,
	node fwk.NodeInfo, leaves func(*v1.Pod) bool) *fwk.Status {
	state, left := state.Clone(), node.Snapshot()
	for _, on := range node.GetPods() {
		if !leaves(on.GetPod()) {
			continue
		}
		if err := left.RemovePod(klog.FromContext(ctx), on.GetPod()); err != nil {
			return fwk.AsStatus(err)
		}
		if status := profile.RunPreFilterExtensionRemovePod(ctx, state, pod, on, left); !status.IsSuccess() {
			return status
		}
	}
	return profile.RunFilterPlugins(ctx, state, pod, left)
}

// discardEvents drops events: the handler of failures is told the same.
type discardEvents struct{}

// Eventf drops the event.
func (discardEvents) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

// WithLogger returns the recorder itself: there is nothing to log.
func (d discardEvents) WithLogger(klog.Logger) events.EventRecorderLogger { return d }
