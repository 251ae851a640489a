package ipreservation

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	tf "k8s.io/kubernetes/pkg/scheduler/testing/framework"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/address"
	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/sandbox/sandboxtest"
	"berth.dev/berth/pkg/simulation/memapi"
)

const profile = "berth-scheduler"

// cluster is a scheduler framework with IPReservation alone in one profile, on an API in memory.
type cluster struct {
	api       *memapi.Server
	framework framework.Framework
	plugin    *Plugin
	nodes     []*v1.Node
	recorder  *events.FakeRecorder
	woken     chan string
}

// activator stands for the scheduling queue, which is not part of a framework. It passes on the names of the pods.
type activator struct{ woken chan string }

// Activate tells of the pods.
func (a *activator) Activate(_ klog.Logger, pods map[string]*v1.Pod) {
	for _, pod := range pods {
		a.woken <- pod.Name
	}
}

func node(name, rack string) *v1.Node {
	return st.MakeNode().Name(name).UID(name).Label("rack", rack).Capacity(map[v1.ResourceName]string{"cpu": "8", "pods": "110"}).Obj()
}

func asking(name, pool string) *v1.Pod {
	p := podNamed(name, pool)
	p.UID = types.UID(name)
	return p
}

func identity(name string) address.Identity {
	return address.Identity{Namespace: "default", Pod: name}
}

func mustAsk(pod *v1.Pod) *address.Ask {
	ask, bad := askOf(pod)
	if bad != nil {
		panic(bad)
	}
	return ask
}

// object reads a pool or a reservation: "IPPool racks {subnets: …}".
func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	parts := strings.SplitN(text, " ", 3)
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(parts[2]), &spec); err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "berth.dev/v1alpha1", "kind": parts[0], "spec": spec}}
	o.SetName(parts[1])
	o.SetUID(types.UID(parts[1]))
	return o
}

// newAPI is an API that serves both kinds.
func newAPI() *memapi.Server {
	api := memapi.New()
	api.Register(poolKind.Resource, "IPPool", false)
	api.Register(reservationKind.Resource, "IPReservation", false)
	return api
}

// newCluster starts the plugin on an API, which is a new one if it is nil, with a node in each of two racks.
func newCluster(t testing.TB, api *memapi.Server, args *config.IPReservationArgs, texts ...string) *cluster {
	t.Helper()
	return newClusterWith(t, api, args, func(*book) {}, texts...)
}

// newClusterWith changes the book before its informers start.
func newClusterWith(t testing.TB, api *memapi.Server, args *config.IPReservationArgs, change func(*book), texts ...string) *cluster {
	t.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	if api == nil {
		api = newAPI()
	}
	c := &cluster{api: api, nodes: []*v1.Node{node("a", "r1"), node("b", "r2")}, recorder: events.NewFakeRecorder(100), woken: make(chan string, 1000)}
	for _, text := range texts {
		if err := api.Create(object(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	config.SetDefaultsIPReservationArgs(args)
	client, err := kubernetes.NewForConfig(api.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	factory := kubeinformers.NewSharedInformerFactory(client, 0)
	remember := func(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		plugin, err := New(ctx, args, handle)
		if c.plugin, _ = plugin.(*Plugin); c.plugin != nil {
			change(c.plugin.book)
		}
		return plugin, err
	}
	c.framework, err = tf.NewFramework(ctx, []tf.RegisterPluginFunc{
		tf.RegisterQueueSortPlugin(queuesort.Name, queuesort.New),
		tf.RegisterBindPlugin(defaultbinder.Name, defaultbinder.New),
		tf.RegisterPluginAsExtensions(Name, remember, "PreFilter", "Filter", "Reserve", "PreBind"),
	}, profile,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithKubeConfig(api.RESTConfig()),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(cache.NewSnapshot(nil, c.nodes)),
		frameworkruntime.WithEventRecorder(c.recorder),
		frameworkruntime.WithPodActivator(&activator{c.woken}),
	)
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(ctx)
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	if synced := factory.WaitForCacheSyncWithContext(ctx); synced.AsError() != nil {
		t.Fatal(synced.AsError())
	}
	return c
}

// filter runs a pod up to Filter and returns for each node why it is refused, or under "" why it is refused everywhere.
func (c *cluster) filter(t testing.TB, pod *v1.Pod) (map[string]string, fwk.CycleState) {
	t.Helper()
	state := framework.NewCycleState()
	if _, status, _ := c.framework.RunPreFilterPlugins(t.Context(), state, pod); !status.IsSuccess() && !status.IsSkip() {
		return map[string]string{"": status.Message()}, state
	}
	reasons := map[string]string{}
	infos, err := c.framework.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		if status := c.framework.RunFilterPlugins(t.Context(), state, pod, info); !status.IsSuccess() {
			reasons[info.Node().Name] = status.Message()
		}
	}
	return reasons, state
}

// onlyNode is where the tests below reserve and bind.
const onlyNode = "a"

func (c *cluster) reserve(t testing.TB, pod *v1.Pod) fwk.CycleState {
	t.Helper()
	reasons, state := c.filter(t, pod)
	if reasons[""]+reasons[onlyNode] != "" {
		t.Fatalf("pod %s cannot run on %s: %v", pod.Name, onlyNode, reasons)
	}
	if status := c.framework.RunReservePluginsReserve(t.Context(), state, pod, onlyNode); !status.IsSuccess() {
		t.Fatalf("reserving for pod %s: %v", pod.Name, status)
	}
	return state
}

// bind runs PreBind for a pod that was reserved, and gives back what was reserved if that fails.
func (c *cluster) bind(t testing.TB, state fwk.CycleState, pod *v1.Pod) string {
	t.Helper()
	if status := c.framework.RunPreBindPreFlights(t.Context(), state, pod, onlyNode); !status.IsSuccess() && !status.IsSkip() {
		t.Fatal(status)
	}
	status := c.framework.RunPreBindPlugins(t.Context(), state, pod, onlyNode)
	if status.IsSuccess() {
		return ""
	}
	c.framework.RunReservePluginsUnreserve(t.Context(), state, pod, onlyNode)
	return status.AsError().Error()
}

// podObject is a pod as an API may own it.
func podObject(pod *v1.Pod) *v1.Pod {
	o := pod.DeepCopy()
	o.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("Pod"))
	return o
}

func (c *cluster) create(t testing.TB, pod *v1.Pod) *v1.Pod {
	t.Helper()
	if err := c.api.Create(podObject(pod)); err != nil {
		t.Fatal(err)
	}
	return pod
}

func (c *cluster) annotations(name string) map[string]string {
	return c.api.Get(v1.SchemeGroupVersion.WithResource("pods"), types.NamespacedName{Namespace: "default", Name: name}).(*v1.Pod).Annotations
}

func (c *cluster) reservation(name string) map[string]any {
	o, _ := c.api.Get(reservationKind.Resource, types.NamespacedName{Name: name}).(*unstructured.Unstructured)
	if o == nil {
		return nil
	}
	return o.Object["spec"].(map[string]any)
}

// await waits for a condition.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline, tick := time.After(10*time.Second), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

// apply creates a pool or a reservation, or puts another in its place.
func (c *cluster) apply(t testing.TB, text string) {
	t.Helper()
	o := object(t, text)
	kind := poolKind
	if o.GetKind() == "IPReservation" {
		kind = reservationKind
	}
	known, _ := c.api.Get(kind.Resource, types.NamespacedName{Name: o.GetName()}).(*unstructured.Unstructured)
	if known == nil {
		if err := c.api.Create(o); err != nil {
			t.Fatal(err)
		}
		return
	}
	client, err := dynamic.NewForConfig(c.api.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	o.SetUID(known.GetUID())
	if status, ok := known.Object["status"]; ok {
		o.Object["status"] = status // which is written by itself
	}
	o.SetResourceVersion(known.GetResourceVersion())
	o.SetGeneration(known.GetGeneration() + 1)
	if _, err := client.Resource(kind.Resource).Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) remove(t testing.TB, kind informers.CustomKind, name string) {
	t.Helper()
	if !c.api.Delete(kind.Resource, types.NamespacedName{Name: name}) {
		t.Fatalf("there is no %s %s", kind.Resource.Resource, name)
	}
}

// ready waits until the plugin has read what there is of reservations and pods, and begins to lead.
func (c *cluster) ready(t testing.TB, pods ...string) {
	t.Helper()
	c.plugin.book.begin()
	for _, name := range pods {
		await(t, "pod "+name, func() bool { _, err := c.plugin.book.pods.Pods("default").Get(name); return err == nil })
	}
}

// The framework counts into metrics that a scheduler registers at its start.
func TestMain(m *testing.M) {
	metrics.Register()
	goleak.VerifyTestMain(m, sandboxtest.Lasting())
}
