package plugins_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/framework"
	"berth.dev/berth/test/harness/objects"
)

// profileName is the shipped profile with all plugins.
const profileName = "berth-scheduler"

// rig is a whole scheduler that the test steps.
type rig struct {
	ctx   context.Context
	sched *simulation.World
	// all looks at all nodes, best at candidates first.
	all, best upstream.Framework
	snapshot  *cache.Snapshot
}

func shipped(tb testing.TB) *schedulerconfig.Configuration {
	tb.Helper()
	configuration, err := schedulerconfig.Load("../../manifests/base/scheduler-config.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	return configuration
}

// newRig starts a scheduler with the shipped configuration and the profile with all plugins on these nodes. Pods with
// a node are on it.
func newRig(tb testing.TB, nodes []*v1.Node, pods ...*v1.Pod) *rig {
	tb.Helper()
	return newRigWith(tb, shipped(tb), profileName, nodes, pods...)
}

func newRigWith(tb testing.TB, configuration *schedulerconfig.Configuration, profile string, nodes []*v1.Node,
	pods ...*v1.Pod) *rig {
	tb.Helper()
	return newRigOn(tb, memapi.New(), configuration, profile, nodes, pods...)
}

var (
	poolsResource        = berthv1alpha1.SchemeGroupVersion.WithResource("ippools")
	reservationsResource = berthv1alpha1.SchemeGroupVersion.WithResource("ipreservations")
	policiesResource     = berthv1alpha1.SchemeGroupVersion.WithResource("placementpolicies")
)

// customAPI is an API that serves our own resources, with that of each text: "IPPool racks {subnets: …}".
func customAPI(tb testing.TB, texts ...string) *memapi.Server {
	tb.Helper()
	api := framework.API(map[string]schema.GroupVersionResource{"IPPool": poolsResource,
		"IPReservation": reservationsResource, "PlacementPolicy": policiesResource})
	for _, text := range texts {
		framework.Create(tb, api, customObject(tb, text))
	}
	return api
}

func customObject(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()
	parts := strings.SplitN(text, " ", 3)
	return objects.Custom(tb, parts[0], parts[1], parts[2])
}

// newRigOn starts the scheduler on an API that may have other objects already.
func newRigOn(tb testing.TB, api *memapi.Server, configuration *schedulerconfig.Configuration, profile string,
	nodes []*v1.Node, pods ...*v1.Pod) *rig {
	tb.Helper()
	for _, node := range nodes {
		framework.Create(tb, api, node)
	}
	for _, pod := range pods {
		framework.Create(tb, api, pod)
	}
	w := &simulation.World{API: api}
	tb.Cleanup(w.Stop)
	if err := w.Start(simulation.Setup{Config: configuration, Parallelism: 2}); err != nil {
		tb.Fatal(err)
	}
	all := w.AllNodes[profile]
	r := &rig{ctx: klog.NewContext(context.Background(), klog.Logger{}), sched: w, all: all, best: w.Profiles[profile],
		snapshot: all.SnapshotSharedLister().(*cache.Snapshot)}
	r.infos(tb)
	return r
}

// infos are the nodes as the scheduler knows them now, and those that plugins see from then on.
func (r *rig) infos(tb testing.TB) []fwk.NodeInfo {
	tb.Helper()
	infos, err := r.sched.Nodes()
	if err != nil {
		tb.Fatal(err)
	}
	return infos
}

// choose runs one scheduling cycle up to the choice of a node.
func (r *rig) choose(tb testing.TB, f upstream.Framework, pod *v1.Pod) (scheduler.ScheduleResult, error) {
	tb.Helper()
	info, err := upstream.NewPodInfo(pod)
	if err != nil {
		tb.Fatal(err)
	}
	return r.sched.SchedulePod(r.ctx, f, upstream.NewCycleState(), &upstream.QueuedPodInfo{PodInfo: info})
}

// assume counts the pod on the node.
func (r *rig) assume(tb testing.TB, pod *v1.Pod, node string) {
	tb.Helper()
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = node
	if err := r.sched.Cache.AssumePod(klog.Logger{}, assumed); err != nil {
		tb.Fatal(err)
	}
	r.infos(tb)
}

// totals are the scores of all nodes that pass.
func (r *rig) totals(tb testing.TB, pod *v1.Pod) map[string]int64 {
	tb.Helper()
	return framework.Cycle(tb, r.all, upstream.NewCycleState(), pod, r.infos(tb)).Totals()
}

// kind is a kind of node.
type kind struct {
	model         string
	gpus          int
	cores, gib    int
	dollarsPerDay int
}

var kinds = []kind{
	{"NVIDIA-A100-SXM4-80GB", 8, 96, 1024, 800}, {"NVIDIA-H100-80GB-HBM3", 8, 128, 1536, 1900},
	{"Tesla-T4", 4, 48, 192, 90},
	{"NVIDIA-A10", 4, 64, 256, 140}, {"", 0, 64, 256, 75},
}

func nodeOf(i int) *v1.Node {
	k, name := kinds[i%len(kinds)], fmt.Sprintf("n%05d", i)
	offers := []string{"cpu", fmt.Sprint(k.cores), "memory", fmt.Sprintf("%dGi", k.gib), "pods", "250"}
	labels := []string{v1.LabelHostname, name, v1.LabelTopologyZone, fmt.Sprintf("z%d", i%3),
		"topology.kubernetes.io/rack", fmt.Sprintf("r%d", i/20)}
	if k.gpus > 0 {
		offers = append(offers, "nvidia.com/gpu", fmt.Sprint(k.gpus))
		labels = append(labels, "nvidia.com/gpu.product", k.model, "nvidia.com/gpu.count", fmt.Sprint(k.gpus))
	}
	node := objects.Node(name, offers...).Condition(v1.NodeReady, v1.ConditionTrue, "", "").
		Annotation("berth.dev/price-per-hour", fmt.Sprintf("%.3f", float64(k.dollarsPerDay)/24))
	return objects.Labelled(node, labels...)
}

func nodesOf(n int) []*v1.Node {
	nodes := make([]*v1.Node, n)
	for i := range nodes {
		nodes[i] = nodeOf(i)
	}
	return nodes
}

// podOf makes a pod that asks for this much.
func podOf(name string, milliCPU, memoryMiB, gpus int) *v1.Pod {
	asks := []string{"cpu", fmt.Sprintf("%dm", milliCPU), "memory", fmt.Sprintf("%dMi", memoryMiB)}
	if gpus > 0 {
		asks = append(asks, "nvidia.com/gpu", fmt.Sprint(gpus))
	}
	pod := objects.Pod(name, asks...).SchedulerName(profileName).Obj()
	pod.Spec.Containers[0].Image = "registry.example/work:1"
	return pod
}
