// Package framework runs plugins in a scheduler's framework for tests, on an API in memory, one extension point after
// the other as the test wants.
//
// Tests that wait, or that wait for nothing to happen, run in a bubble of testing/synctest.
package framework

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"berth.dev/berth/pkg/lab/simulation/memapi"
	ourinformers "berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/test/harness/require"
)

// Setup says which plugins run, and on what.
type Setup struct {
	// Profile is that of the framework. Alone makes one.
	Profile *schedulerapi.KubeSchedulerProfile
	// Plugins are those of the profile, besides the stock ones that sort the queue and bind.
	Plugins frameworkruntime.Registry
	// API is where informers read and plugins write, a new one if nil.
	API *memapi.Server
	// Through, if there, carries the requests of the scheduler and of its plugins in the place of a connection to the API.
	Through func(api http.RoundTripper) http.RoundTripper
	// Client is used in the place of one of API, by tests of what only a fake can do. It has its objects already.
	Client kubernetes.Interface
	// Objects are created on API.
	Objects []runtime.Object
	// Leader knows whether the scheduler leads. Without one it does.
	Leader ourinformers.Leader
}

// Scheduler is what a scheduler keeps, stepped by the test, and the framework of its first profile. Its cache has the
// nodes and the pods that there are at the start, and what the test puts into it.
type Scheduler struct {
	framework.Framework
	API      *memapi.Server
	Client   kubernetes.Interface
	Factory  informers.SharedInformerFactory
	Cache    cache.Cache
	Snapshot *cache.Snapshot
	DRA      fwk.SharedDRAManager
	// Recorder has the events that plugins wrote.
	Recorder *events.FakeRecorder
	ctx      context.Context //nolint:containedctx // that of the scheduler
	stop     func()
	config   *rest.Config
	queue    activator
}

// Stop ends what runs, as the end of the test does.
func (s *Scheduler) Stop() { s.stop() }

// Alone is a profile with one plugin at these extension points, all if none is named, with these args, its defaults if
// nil.
func Alone(profile, plugin string, args runtime.Object, points ...string) *schedulerapi.KubeSchedulerProfile {
	p := &schedulerapi.KubeSchedulerProfile{SchedulerName: profile, Plugins: &schedulerapi.Plugins{
		QueueSort: enabled(queuesort.Name), Bind: enabled(defaultbinder.Name),
	}}
	if len(points) == 0 {
		p.Plugins.MultiPoint = enabled(plugin)
	}
	sets := map[string]*schedulerapi.PluginSet{
		"PreFilter": &p.Plugins.PreFilter, "Filter": &p.Plugins.Filter, "PreScore": &p.Plugins.PreScore,
		"Score":   &p.Plugins.Score,
		"Reserve": &p.Plugins.Reserve, "PreBind": &p.Plugins.PreBind,
	}
	for _, point := range points {
		*sets[point] = enabled(plugin)
	}
	if args == nil {
		kind := configv1.SchemeGroupVersion.WithKind(plugin + "Args")
		// A plugin without args has no such kind.
		args, _, _ = scheme.Codecs.UniversalDecoder().Decode(nil, &kind, nil)
	}
	if args != nil {
		p.PluginConfig = []schedulerapi.PluginConfig{{Name: plugin, Args: args}}
	}
	return p
}

func enabled(plugin string) schedulerapi.PluginSet {
	return schedulerapi.PluginSet{Enabled: []schedulerapi.Plugin{{Name: plugin, Weight: 1}}}
}

// New makes a scheduler with an empty cache, whose informers the test feeds, or starts, itself.
func New(ctx context.Context, client kubernetes.Interface) *Scheduler {
	// The framework counts into metrics that a scheduler registers at its start.
	metrics.Register()
	return &Scheduler{
		Client: client, Factory: informers.NewSharedInformerFactory(client, 0), Cache: cache.New(ctx, nil, false, false),
		Snapshot: cache.NewEmptySnapshot(), Recorder: events.NewFakeRecorder(1000), ctx: ctx,
	}
}

// Start runs until the test ends. Informers have synced when it returns; their handlers may still be under way.
func Start(tb testing.TB, setup Setup) *Scheduler {
	tb.Helper()
	api := setup.API
	if api == nil {
		api = memapi.New()
	}
	Create(tb, api, setup.Objects...)
	config, client := api.RESTConfig(), setup.Client
	if setup.Through != nil {
		config.Transport = setup.Through(config.Transport)
	}
	if client == nil {
		var err error
		if client, err = kubernetes.NewForConfig(config); err != nil {
			tb.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	s := New(ctx, client)
	if setup.Leader != nil {
		ourinformers.Elect(s.Factory, setup.Leader)
	}
	s.API, s.config = api, config
	s.stop = sync.OnceFunc(func() {
		cancel()
		s.Factory.Shutdown()
	})
	tb.Cleanup(s.Stop)
	classes := s.startDRA(tb)
	s.Framework = s.NewFramework(tb, setup.Profile, setup.Plugins)
	s.Factory.StartWithContext(ctx)
	if synced := s.Factory.WaitForCacheSyncWithContext(ctx); synced.AsError() != nil {
		tb.Fatal(synced.AsError())
	}
	if classes != nil && !toolscache.WaitForCacheSync(ctx.Done(), classes.HasSynced) {
		tb.Fatal("device classes are not synced")
	}
	s.fillCache(tb)
	return s
}

// startDRA makes what a scheduler keeps of claims, slices and device classes.
func (s *Scheduler) startDRA(tb testing.TB) (classes toolscache.ResourceEventHandlerRegistration) {
	tb.Helper()
	resources := s.Factory.Resource().V1()
	claims := assumecache.NewAssumeCache(klog.Logger{}, resources.ResourceClaims().Informer(), "ResourceClaim", "", nil)
	slices, err := tracker.StartTracker(s.ctx, tracker.Options{SliceInformer: resources.ResourceSlices(),
		KubeClient: s.Client})
	require.NoError(tb, err)
	manager := dynamicresources.NewDRAManager(s.ctx, claims, slices, s.Factory)
	s.DRA = manager
	if handler, ok := manager.DeviceClassResolver().(toolscache.ResourceEventHandler); ok {
		if classes, err = resources.DeviceClasses().Informer().AddEventHandler(handler); err != nil {
			tb.Fatal(err)
		}
	}
	return classes
}

// NewFramework makes the framework of a further profile of the same scheduler.
func (s *Scheduler) NewFramework(tb testing.TB, profile *schedulerapi.KubeSchedulerProfile,
	plugins frameworkruntime.Registry) framework.Framework {
	tb.Helper()
	registry := frameworkruntime.Registry{queuesort.Name: queuesort.New, defaultbinder.Name: defaultbinder.New}
	for name, plugin := range plugins {
		registry[name] = plugin
	}
	f, err := frameworkruntime.NewFramework(s.ctx, registry, profile,
		frameworkruntime.WithClientSet(s.Client), frameworkruntime.WithKubeConfig(s.config),
		frameworkruntime.WithInformerFactory(s.Factory),
		frameworkruntime.WithSharedDRAManager(s.DRA), frameworkruntime.WithSnapshotSharedLister(s.Snapshot),
		frameworkruntime.WithEventRecorder(s.Recorder), frameworkruntime.WithPodActivator(&s.queue),
	)
	require.NoError(tb, err)
	return f
}

// fillCache puts into the cache what the API has, in its order.
func (s *Scheduler) fillCache(tb testing.TB) {
	tb.Helper()
	nodes, err := s.Client.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{})
	require.NoError(tb, err)
	pods, err := s.Client.CoreV1().Pods(metav1.NamespaceAll).List(s.ctx, metav1.ListOptions{})
	require.NoError(tb, err)
	for i := range nodes.Items {
		s.Cache.AddNode(klog.Logger{}, &nodes.Items[i])
	}
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName == "" {
			continue
		}
		require.NoError(tb, s.Cache.AddPod(klog.Logger{}, &pods.Items[i]))
	}
}

// activator stands for the scheduling queue, which is not part of a framework. It remembers the names of the pods.
type activator struct {
	mu    sync.Mutex
	woken []string
}

// Activate tells of the pods.
func (a *activator) Activate(_ klog.Logger, pods map[string]*v1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, pod := range pods {
		a.woken = append(a.woken, pod.Name)
	}
}

// Woken are the names of the pods that plugins have put into the active queue since it was asked last, each once, in
// order.
func (s *Scheduler) Woken() []string {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	woken := s.queue.woken
	s.queue.woken = nil
	slices.Sort(woken)
	return slices.Compact(woken)
}

// Plugin is the plugin of a framework that has the type.
func Plugin[P fwk.Plugin](tb testing.TB, f framework.Framework) P {
	tb.Helper()
	for _, plugin := range f.EnqueueExtensions() {
		if p, ok := plugin.(P); ok {
			return p
		}
	}
	var none P
	tb.Fatalf("the framework has no %T", none)
	return none
}
