package extender

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/plugins"
	"berth.dev/berth/pkg/plugins/costoptimized"
	"berth.dev/berth/pkg/plugins/gpuaware"
)

// Extender decides about pods on request. Its methods may be called from any goroutine.
type Extender struct {
	api       *rest.Config
	factory   kubeinformers.SharedInformerFactory
	events    events.EventBroadcaster
	sched     *scheduler.Scheduler
	framework framework.Framework
	snapshot  *internalcache.Snapshot
	// turn admits one cycle at a time.
	cycle chan struct{}
	// topScore is the highest sum of weighted scores that a node can get.
	topScore int64
	// gpus reads GPUs as the profile does; nil if it knows nothing of them.
	gpus   *gpuview.Keys
	synced atomic.Bool
	// noWaitUntil is until when answers do not wait for events that may be missing, in nanoseconds of Unix time.
	noWaitUntil atomic.Int64
}

// New makes an extender from a profile of a validated configuration, for the API server that api reaches. It asks the
// network for nothing. The context ends what the plugins do in the background.
func New(ctx context.Context, component *schedulerconfig.KubeSchedulerConfiguration, name string,
	api *rest.Config) (*Extender, error) {
	profile, err := reduce(component, name)
	if err != nil {
		return nil, err
	}
	protobuf := rest.CopyConfig(api)
	protobuf.AcceptContentTypes, protobuf.ContentType = component.ClientConnection.AcceptContentTypes,
		component.ClientConnection.ContentType
	client, err := kubernetes.NewForConfig(protobuf)
	if err != nil {
		return nil, fmt.Errorf("making the API client: %w", err)
	}
	e := &Extender{
		api:      api,
		factory:  scheduler.NewInformerFactory(client, 0, nil),
		events:   events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()}),
		snapshot: internalcache.NewEmptySnapshot(),
		cycle:    make(chan struct{}, 1),
	}
	// The plugins name no event of a custom resource, for which the scheduler would want a dynamic client.
	e.sched, err = scheduler.New(ctx, client, e.factory, nil,
		func(name string) events.EventRecorderLogger { return e.events.NewRecorder(scheme.Scheme, name) },
		scheduler.WithComponentConfigVersion(component.APIVersion),
		scheduler.WithKubeConfig(protobuf),
		scheduler.WithProfiles(*profile),
		scheduler.WithFrameworkOutOfTreeRegistry(plugins.Registry()),
		scheduler.WithParallelism(component.Parallelism),
		scheduler.WithNodeInfoSnapshot(e.snapshot),
	)
	if err != nil {
		e.events.Shutdown()
		return nil, fmt.Errorf("making the plugins of profile %s: %s", name,
			strings.Join(strings.Fields(err.Error()), " "))
	}
	e.framework = e.sched.Profiles[profile.SchedulerName]
	for _, score := range e.framework.ListPlugins().Score.Enabled {
		e.topScore += fwk.MaxScore * int64(score.Weight)
	}
	for _, c := range profile.PluginConfig {
		if args, ok := c.Args.(*config.GPUAwareArgs); ok {
			e.gpus = &gpuview.Keys{GPUNames: args.GPUNames}
		}
	}
	registerMetrics()
	return e, nil
}

// Start begins to watch the cluster and returns when the extender has read all of it, or when the context ends.
func (e *Extender) Start(ctx context.Context) error {
	if err := e.events.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("starting to record events: %w", err)
	}
	e.factory.StartWithContext(ctx)
	e.factory.WaitForCacheSync(ctx.Done())
	if err := e.sched.WaitForHandlersSync(ctx); err != nil {
		return fmt.Errorf("reading the cluster: %w", err)
	}
	e.synced.Store(true)
	klog.FromContext(ctx).Info("Seen the whole cluster")
	return nil
}

// ready returns an error while the extender has not seen the whole cluster.
func (e *Extender) ready() error {
	if !e.synced.Load() {
		return errors.New("the extender has not seen the whole cluster yet")
	}
	return nil
}

// Close ends what the extender does in the background, when the context of New and Start has ended.
func (e *Extender) Close() {
	e.sched.SchedulingQueue.Close()
	e.events.Shutdown()
	e.factory.Shutdown()
	if err := e.sched.Profiles.Close(); err != nil {
		klog.Background().Error(err, "Closing plugins failed")
	}
}

// served are the plugins that can decide about one pod and one node. Coscheduling cannot: it orders the queue and makes
// pods wait, for which the protocol has no verb.
var served = []string{gpuaware.Name, costoptimized.Name}

// reduce returns a profile with the plugins of ours only, as they are enabled there, and with their args.
func reduce(component *schedulerconfig.KubeSchedulerConfiguration, name string) (*schedulerconfig.KubeSchedulerProfile,
	error) {
	at := slices.IndexFunc(component.Profiles,
		func(p schedulerconfig.KubeSchedulerProfile) bool { return p.SchedulerName == name })
	if at < 0 {
		return nil, fmt.Errorf("choosing a profile: there is no profile %q", name)
	}
	profile := component.Profiles[at].DeepCopy()
	// No pod has a scheduler of this name, so that none is queued for a scheduler that never runs.
	profile.SchedulerName = name + " (extender)"
	all := profile.Plugins
	profile.Plugins = &schedulerconfig.Plugins{
		QueueSort:  schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: names.PrioritySort}}},
		Bind:       schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: names.DefaultBinder}}},
		MultiPoint: ours(all.MultiPoint),
		PreFilter:  ours(all.PreFilter),
		Filter:     ours(all.Filter),
		PreScore:   ours(all.PreScore),
		Score:      ours(all.Score),
	}
	profile.PluginConfig = slices.DeleteFunc(profile.PluginConfig, func(c schedulerconfig.PluginConfig) bool {
		return !slices.Contains(served, c.Name)
	})
	p := profile.Plugins
	if len(p.MultiPoint.Enabled)+len(p.Filter.Enabled)+len(p.Score.Enabled) == 0 {
		return nil, fmt.Errorf("reading profile %s: it enables neither %s nor %s, so there is nothing to serve", name,
			gpuaware.Name, costoptimized.Name)
	}
	return profile, nil
}

func ours(set schedulerconfig.PluginSet) schedulerconfig.PluginSet {
	foreign := func(p schedulerconfig.Plugin) bool { return !slices.Contains(served, p.Name) }
	// "*" disables the plugins of MultiPoint at one extension point, ours as well.
	return schedulerconfig.PluginSet{
		Enabled: slices.DeleteFunc(slices.Clone(set.Enabled), foreign),
		Disabled: slices.DeleteFunc(slices.Clone(set.Disabled), func(p schedulerconfig.Plugin) bool {
			return p.Name != "*" && foreign(p)
		}),
	}
}
