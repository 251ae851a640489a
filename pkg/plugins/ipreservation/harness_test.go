package ipreservation

import (
	"context"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/address"
	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/simulation/memapi"
	"berth.dev/berth/pkg/simulation/plugintest"
	"berth.dev/berth/test/harness/leak"
)

const profile = "berth-scheduler"

// cluster is a scheduler framework with IPReservation alone in one profile, on an API in memory.
type cluster struct {
	api       *memapi.Server
	framework *plugintest.Framework
	plugin    *Plugin
}

func node(name, rack string) *v1.Node {
	return st.MakeNode().Name(name).UID(name).Label("rack", rack).Capacity(map[v1.ResourceName]string{"cpu": "8", "pods": "110"}).Obj()
}

func podNamed(name, pool string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: v1.PodSpec{
		SchedulerName: profile, TerminationGracePeriodSeconds: ptr.To[int64](0), Containers: []v1.Container{{Name: "main", Image: "image"}}}}
	if pool != "" {
		p.Annotations = map[string]string{"berth.dev/ip-pool": pool}
	}
	return p
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
	return plugintest.Object(t, parts[0], parts[1], parts[2])
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
	if api == nil {
		api = newAPI()
	}
	c := &cluster{api: api}
	for _, text := range texts {
		if err := api.Create(object(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	config.SetDefaultsIPReservationArgs(args)
	remember := func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		plugin, err := New(ctx, args, handle)
		if c.plugin, _ = plugin.(*Plugin); c.plugin != nil {
			change(c.plugin.book)
		}
		return plugin, err
	}
	c.framework = plugintest.Start(t, &plugintest.Setup{
		Profile: profile, Name: Name, New: remember, Args: args, Points: []string{"PreFilter", "Filter", "Reserve", "PreBind"},
		API: api.RESTConfig(), Nodes: []*v1.Node{node("a", "r1"), node("b", "r2")},
	})
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
	for _, info := range c.framework.Infos(t) {
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

// apply creates a pool or a reservation, or puts another in its place.
func (c *cluster) apply(t testing.TB, text string) {
	t.Helper()
	o, kind := object(t, text), poolKind
	if o.GetKind() == "IPReservation" {
		kind = reservationKind
	}
	plugintest.Apply(t, c.api, kind.Resource, o)
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
		plugintest.Await(t, "pod "+name, func() bool { _, err := c.plugin.book.pods.Pods("default").Get(name); return err == nil })
	}
}

// The framework counts into metrics that a scheduler registers at its start.
func TestMain(m *testing.M) {
	metrics.Register()
	leak.Main(m)
}
