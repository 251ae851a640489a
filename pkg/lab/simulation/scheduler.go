package simulation

import (
	"cmp"
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
	"berth.dev/berth/pkg/schedulerconfig"
)

// defaultParallelism is enough for a workstation: more goroutines than cores gain nothing.
const defaultParallelism = 8

// Setup says which scheduler runs in a world.
type Setup struct {
	Config *schedulerconfig.Configuration
	// Parallelism is the number of goroutines that look at nodes; 0 is 8.
	Parallelism int32
	// API connects the scheduler to the world's API. The default is a direct connection.
	API *rest.Config
	// Plugins are added to Berth's own.
	Plugins frameworkruntime.Registry
	// Events makes the recorders of events by the names of profiles. Without it events are dropped.
	Events profile.RecorderFactory
	// Leader says whether the scheduler leads. Without one it does.
	Leader informers.Leader
	// Logs enables the logs of the scheduler.
	Logs bool
}

// Start builds the scheduler as the command does, starts its informers and waits until it has seen every object. The
// functions in changes may change its profiles; they run before the informers start, whose handlers read these. Nothing
// is scheduled until Run or ScheduleOne is called. The caller has to call Stop. It works in real time as well as on a
// virtual clock.
func (w *World) Start(s Setup, changes ...func()) (err error) {
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
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	if !s.Logs {
		// Names and values are added to a logger for every node and plugin, unless it is this one, which logs nothing.
		ctx = klog.NewContext(ctx, klog.Logger{})
	}
	registry, err := w.registry(ctx, s.Plugins)
	if err != nil {
		return err
	}
	// The goroutines that New starts flush metrics every second, which in virtual time would be most of the work. Their
	// context ends when everything is synced; Berth's own plugins get the context that lasts.
	starting, started := context.WithCancel(ctx)
	defer started()
	// The scheduler keeps and changes its configuration, which the caller may use for other runs.
	component := s.Config.Component.DeepCopy()
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
		scheduler.WithParallelism(cmp.Or(s.Parallelism, defaultParallelism)),
	)
	if err == nil {
		err = plugins.CheckPoints(sched.Profiles)
	}
	if err != nil {
		return s.Config.Invalid(err)
	}
	w.Scheduler, w.AllNodes, w.ctx, w.cancel, w.done = sched, maps.Clone(sched.Profiles), ctx, cancel, nil
	w.informers = []interface{ Shutdown() }{factory, dynamicInformers}
	w.wrap(changes)
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

// registry has Berth's plugins and more. The plugins that it makes are put into w.Plugins, and live as long as ctx.
func (w *World) registry(ctx context.Context, more frameworkruntime.Registry) (frameworkruntime.Registry, error) {
	registry := plugins.Registry()
	if err := registry.Merge(more); err != nil {
		return nil, fmt.Errorf("registering plugins: %w", err)
	}
	w.Plugins = map[string]fwk.Plugin{}
	for name, factory := range registry {
		registry[name] = func(_ context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			plugin, err := factory(ctx, args, handle)
			w.Plugins[name] = plugin
			return plugin, err //nolint:wrapcheck // it is the caller's
		}
	}
	return registry, nil
}

// wrap wraps the queue, the cache, the failure handler and the profiles of the scheduler as the command does, and then
// calls the functions that change them further.
func (w *World) wrap(changes []func()) {
	w.SchedulingQueue, w.FailureHandler = coscheduling.Listen(w.Profiles, w.SchedulingQueue, w.FailureHandler)
	w.Cache = coscheduling.Follow(w.Profiles, w.Cache, w.WaitForHandlersSync)
	candidates.Wrap(w.Profiles)
	for _, change := range changes {
		change()
	}
}

// Run starts the scheduling loop, which runs until Stop.
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

// Stop ends every goroutine of the scheduler and removes it from the world, if there is one.
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

// Nodes updates the scheduler's snapshot, which all profiles share, and returns its nodes.
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

// PreEnqueue is the status with which a plugin keeps the pod out of the queue, nil if none does.
func (w *World) PreEnqueue(pod *v1.Pod) *fwk.Status {
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

// FilterWithout runs the filters of a profile for a node without the pods for which leaves is true. The state is that
// of a cycle of the pod after PreFilter; it is not changed.
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

// discardEvents drops events: the failure handler gets the same information.
type discardEvents struct{}

// Eventf drops the event.
func (discardEvents) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

// WithLogger returns the recorder itself: there is nothing to log.
func (d discardEvents) WithLogger(klog.Logger) events.EventRecorderLogger { return d }
