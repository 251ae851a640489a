// Package plugintest runs one plugin alone in a scheduler framework for a test.
package plugintest

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	tf "k8s.io/kubernetes/pkg/scheduler/testing/framework"
)

// awaitWithin bounds the wait for what another goroutine does, which may have no processor for seconds on a busy machine.
const awaitWithin = time.Minute

// Setup says which plugin runs, where, and on which API.
type Setup struct {
	// Profile is the name of the only profile.
	Profile string
	// Name, New, Args and Points are the plugin's: Points are the extension points at which it runs.
	Name   string
	New    frameworkruntime.PluginFactory
	Args   runtime.Object
	Points []string
	// API is where informers and bindings go. It serves the plugin's custom objects, too.
	API *rest.Config
	// Nodes and Pods are the snapshot that the plugin sees. Pods have a node.
	Nodes []*v1.Node
	Pods  []*v1.Pod
}

// Framework is a scheduler framework with one plugin.
type Framework struct {
	framework.Framework
	// Recorder has the events that the plugin wrote.
	Recorder *events.FakeRecorder
	// Woken has the names of the pods that the plugin put into the active queue.
	Woken chan string
}

// Start runs until the test ends. Informers have synced when it returns; their handlers may still be under way.
func Start(tb testing.TB, s *Setup) *Framework {
	tb.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	client, err := kubernetes.NewForConfig(s.API)
	if err != nil {
		cancel()
		tb.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	tb.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	f := &Framework{Recorder: events.NewFakeRecorder(100), Woken: make(chan string, 1000)}
	f.Framework, err = tf.NewFramework(ctx, []tf.RegisterPluginFunc{
		tf.RegisterQueueSortPlugin(queuesort.Name, queuesort.New),
		tf.RegisterBindPlugin(defaultbinder.Name, defaultbinder.New),
		tf.RegisterPluginAsExtensionsWithWeight(s.Name, 1, s.New, s.Points...),
		func(_ *frameworkruntime.Registry, p *schedulerapi.KubeSchedulerProfile) {
			if s.Args != nil {
				p.PluginConfig = []schedulerapi.PluginConfig{{Name: s.Name, Args: s.Args}}
			}
		},
	}, s.Profile,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithKubeConfig(s.API),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(cache.NewSnapshot(s.Pods, s.Nodes)),
		frameworkruntime.WithEventRecorder(f.Recorder),
		frameworkruntime.WithPodActivator(activator{f.Woken}),
	)
	if err != nil {
		tb.Fatal(err)
	}
	factory.StartWithContext(ctx)
	if synced := factory.WaitForCacheSyncWithContext(ctx); synced.AsError() != nil {
		tb.Fatal(synced.AsError())
	}
	return f
}

// Infos are the nodes of the snapshot.
func (f *Framework) Infos(tb testing.TB) []fwk.NodeInfo {
	tb.Helper()
	infos, err := f.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		tb.Fatal(err)
	}
	return infos
}

// activator stands for the scheduling queue, which is not part of a framework.
type activator struct{ woken chan string }

// Activate tells of the pods.
func (a activator) Activate(_ klog.Logger, pods map[string]*v1.Pod) {
	for _, pod := range pods {
		a.woken <- pod.Name
	}
}

// Await waits until a condition holds that another goroutine brings about.
func Await(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	deadline, tick := time.After(awaitWithin), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			// This goroutine may have had none either.
			if !holds() {
				tb.Fatalf("waiting for %s: not within %s", what, awaitWithin)
			}
			return
		case <-tick.C:
		}
	}
}
