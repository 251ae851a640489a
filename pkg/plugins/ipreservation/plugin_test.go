package ipreservation

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/replay/memapi"
)

const profile = "berth-scheduler"

// cluster is a scheduler framework with IPReservation alone in one profile, on an API in memory.
type cluster struct {
	api       *memapi.Server
	framework framework.Framework
	plugin    *Plugin
	nodes     []*v1.Node
}

// idle stands for the scheduling queue, which is not part of a framework.
type idle struct{}

func (idle) Activate(klog.Logger, map[string]*v1.Pod) {}

func node(name, rack string) *v1.Node {
	return st.MakeNode().Name(name).UID(name).Label("rack", rack).Capacity(map[v1.ResourceName]string{"cpu": "8", "pods": "110"}).Obj()
}

func asking(name, pool string) *v1.Pod {
	p := podNamed(name, pool)
	p.UID = types.UID(name)
	return p
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

// newCluster starts the plugin on an API, which is a new one if it is nil, with a node in each of two racks.
func newCluster(t testing.TB, api *memapi.Server, args *config.IPReservationArgs, texts ...string) *cluster {
	t.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	if api == nil {
		api = memapi.New()
		api.Register(poolKind.Resource, "IPPool", false)
		api.Register(reservationKind.Resource, "IPReservation", false)
	}
	c := &cluster{api: api, nodes: []*v1.Node{node("a", "r1"), node("b", "r2")}}
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
	factory := informers.NewSharedInformerFactory(client, 0)
	remember := func(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		plugin, err := New(ctx, args, handle)
		c.plugin, _ = plugin.(*Plugin)
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
		frameworkruntime.WithPodActivator(idle{}),
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

func (c *cluster) create(t testing.TB, pod *v1.Pod) *v1.Pod {
	t.Helper()
	o := pod.DeepCopy()
	o.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("Pod"))
	if err := c.api.Create(o); err != nil {
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

const onePerRack = `IPPool racks {subnets: [{domain: {key: rack, value: r1}, ranges: [10.0.1.1]}, {domain: {key: rack, value: r2}, ranges: [10.0.2.1]}]}`

func TestWhereAPodMayRun(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		objects []string
		pod     *v1.Pod
		want    map[string]string
		skipped bool
	}{
		"a pod that asks for nothing": {objects: []string{onePerRack}, pod: asking("p", ""), want: map[string]string{}, skipped: true},
		"a pod that others' reservations are nothing to": {objects: []string{`IPReservation ip-10-0-0-1 {address: 10.0.0.1, pod: {namespace: default, name: q}}`},
			pod: asking("p", ""), want: map[string]string{}, skipped: true},
		"a pod of a pool with addresses":   {objects: []string{onePerRack}, pod: asking("p", "racks"), want: map[string]string{}},
		"a pod of a pool that is missing":  {pod: asking("p", "racks"), want: map[string]string{"": "there is no IPPool racks"}},
		"a pool that cannot be used":       {objects: []string{`IPPool racks {subnets: [{ranges: [10.0.0.9-10.0.0.1]}]}`}, pod: asking("p", "racks"), want: map[string]string{"": `pool racks cannot be used: spec.subnets[0].ranges: Invalid value: "10.0.0.9-10.0.0.1": reading range "10.0.0.9-10.0.0.1": the first address is greater than the last one`}},
		"a pool of other namespaces":       {objects: []string{`IPPool racks {namespaces: [x], subnets: [{ranges: [10.0.0.1]}]}`}, pod: asking("p", "racks"), want: map[string]string{"": "pool racks is not for pods of namespace default"}},
		"an annotation that names no pool": {pod: asking("p", "A B"), want: map[string]string{"": `pod annotation berth.dev/ip-pool: "A B" is not the name of an IPPool, such as racks`}},
		"a domain that is full": {objects: []string{onePerRack, `IPReservation ip-10-0-1-1 {address: 10.0.1.1, pod: {namespace: default, name: q}}`},
			pod: asking("p", "racks"), want: map[string]string{"a": "pool racks has no free address in domain rack=r1"}},
		"a reservation in one rack": {objects: []string{`IPReservation ip-10-0-0-1 {address: 10.0.0.1, domain: {key: rack, value: r2}, pod: {namespace: default, name: p}}`},
			pod: asking("p", ""), want: map[string]string{"a": "node(s) where the pod's address is not routable: 10.0.0.1 (rack=r2)"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, nil, &config.IPReservationArgs{}, test.objects...)
			got, state := c.filter(t, test.pod)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
			if state.GetSkipFilterPlugins().Has(Name) != test.skipped {
				t.Errorf("Filter is skipped: %t, want %t", !test.skipped, test.skipped)
			}
			if _, status := c.plugin.SignPod(t.Context(), test.pod); status.IsSuccess() != test.skipped {
				t.Errorf("a pod that is skipped: %t; it is signed: %t", test.skipped, status.IsSuccess())
			}
		})
	}
}

// Another scheduler takes the address after this one has promised it: the API server tells, and the pod gets another.
func TestAnAddressThatAnotherSchedulerTakes(t *testing.T) {
	t.Parallel()
	old := newCluster(t, nil, &config.IPReservationArgs{}, `IPPool any {subnets: [{ranges: [10.0.0.1-10.0.0.2]}]}`)
	p, q := old.create(t, asking("p", "any")), old.create(t, asking("q", "any"))
	fresh := newCluster(t, old.api, &config.IPReservationArgs{})
	first, second := old.reserve(t, p), fresh.reserve(t, q)
	if reason := old.bind(t, first, p); reason != "" {
		t.Fatal(reason)
	}
	if reason := fresh.bind(t, second, q); !strings.Contains(reason, "the address is reserved for another pod") {
		t.Errorf("the second scheduler says %q", reason)
	}
	if reason := fresh.bind(t, fresh.reserve(t, q), q); reason != "" {
		t.Error(reason)
	}
	want := map[string]string{"p": "10.0.0.1", "q": "10.0.0.2"}
	got := map[string]string{"p": old.annotations("p")["berth.dev/ip-address"], "q": old.annotations("q")["berth.dev/ip-address"]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

func TestWhatIsWritten(t *testing.T) {
	t.Parallel()
	args := &config.IPReservationArgs{AddressAnnotation: ptr.To("cni.projectcalico.org/ipAddrs"), AddressFormat: ptr.To(config.AddressJSONList)}
	c := newCluster(t, nil, args, `IPPool racks {releasePolicy: Retain, releaseAfter: 1h, subnets: [{domain: {key: rack, value: r1}, ranges: ["2001:db8::/64"]}]}`)
	p := asking("db-3", "racks")
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "db"}, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	if reason := c.bind(t, c.reserve(t, c.create(t, p)), p); reason != "" {
		t.Fatal(reason)
	}
	want := map[string]any{"address": "2001:db8::1", "pool": "racks", "podUID": "db-3", "releasePolicy": "Retain", "releaseAfter": "1h0m0s",
		"domain": map[string]any{"key": "rack", "value": "r1"}, "pod": map[string]any{"namespace": "default", "statefulSet": "db", "ordinal": int64(3)}}
	if diff := cmp.Diff(want, c.reservation("ip-2001-db8--1")); diff != "" {
		t.Errorf("reservation (-want +got):\n%s", diff)
	}
	if got := c.annotations("db-3")["cni.projectcalico.org/ipAddrs"]; got != `["2001:db8::1"]` {
		t.Errorf("the annotation is %s", got)
	}
}

// A pod whose binding fails gives its address back, and members of a gang that are tried on nodes take one each.
func TestWhatIsTriedIsGivenBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil, &config.IPReservationArgs{}, onePerRack)
	p := asking("p", "racks")
	state := c.reserve(t, p)
	if reasons, _ := c.filter(t, asking("q", "racks")); reasons["a"] == "" {
		t.Error("a promised address is free")
	}
	c.framework.RunReservePluginsUnreserve(t.Context(), state, p, "a")
	reasons, state := c.filter(t, asking("q", "racks"))
	if len(reasons) > 0 {
		t.Errorf("refused after the address was given back: %v", reasons)
	}
	info, err := c.framework.SnapshotSharedLister().NodeInfos().Get("a")
	if err != nil {
		t.Fatal(err)
	}
	sibling, err := framework.NewPodInfo(p)
	if err != nil {
		t.Fatal(err)
	}
	clone := state.Clone()
	c.framework.RunPreFilterExtensionAddPod(t.Context(), clone, asking("q", "racks"), sibling, info)
	for name, want := range map[fwk.CycleState]string{clone: "pool racks has no free address in domain rack=r1", state: ""} {
		if got := c.framework.RunFilterPlugins(t.Context(), name, asking("q", "racks"), info).Message(); got != want {
			t.Errorf("with a sibling on the node: %q, want %q", got, want)
		}
	}
	c.framework.RunPreFilterExtensionRemovePod(t.Context(), clone, asking("q", "racks"), sibling, info)
	if got := c.framework.RunFilterPlugins(t.Context(), clone, asking("q", "racks"), info); !got.IsSuccess() {
		t.Errorf("without the sibling: %v", got)
	}
}

// The framework counts into metrics that a scheduler registers at its start.
func TestMain(m *testing.M) {
	metrics.Register()
	os.Exit(m.Run())
}
