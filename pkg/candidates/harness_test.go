package candidates_test

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/simulation"
	"berth.dev/berth/pkg/simulation/memapi"
	"berth.dev/berth/test/harness/leak"
)

func TestMain(m *testing.M) {
	metrics.Register()
	leak.Main(m)
}

// profileName is the profile with all plugins.
const profileName = "berth-scheduler"

// rig is a scheduler with the shipped configuration that the test steps.
type rig struct {
	ctx   context.Context
	sched *simulation.Scheduler
	// all looks at all nodes, best at candidates first.
	all, best framework.Framework
	snapshot  *internalcache.Snapshot
	logger    klog.Logger
}

// newRig starts a scheduler with the shipped configuration and the profile with all plugins on these nodes. Pods with a node are on it.
func newRig(tb testing.TB, nodes []*v1.Node, pods ...*v1.Pod) *rig {
	tb.Helper()
	return newRigWith(tb, shipped(tb), profileName, nodes, pods...)
}

func shipped(tb testing.TB) *schedulerconfig.Configuration {
	tb.Helper()
	configuration, err := schedulerconfig.Load("../../manifests/base/scheduler-config.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	return configuration
}

func newRigWith(tb testing.TB, configuration *schedulerconfig.Configuration, profile string, nodes []*v1.Node, pods ...*v1.Pod) *rig {
	tb.Helper()
	return newRigOn(tb, memapi.New(), configuration, profile, nodes, pods...)
}

// newRigOn starts the scheduler on an API that may have other objects already.
func newRigOn(tb testing.TB, api *memapi.Server, configuration *schedulerconfig.Configuration, profile string, nodes []*v1.Node, pods ...*v1.Pod) *rig {
	tb.Helper()
	for _, node := range nodes {
		if err := api.Create(node); err != nil {
			tb.Fatal(err)
		}
	}
	for _, pod := range pods {
		if err := api.Create(pod); err != nil {
			tb.Fatal(err)
		}
	}
	ctx := klog.NewContext(context.Background(), klog.Logger{})
	sched, err := simulation.NewScheduler(ctx, api, configuration, 2)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(sched.Stop)
	all := sched.Profiles[profile]
	wrapped := map[string]framework.Framework{profile: all}
	candidates.Wrap(wrapped)
	r := &rig{ctx: ctx, sched: sched, all: all, best: wrapped[profile], snapshot: all.SnapshotSharedLister().(*internalcache.Snapshot)}
	r.refresh(tb)
	return r
}

func (r *rig) refresh(tb testing.TB) {
	tb.Helper()
	if err := r.sched.Cache.UpdateSnapshot(r.logger, r.snapshot); err != nil {
		tb.Fatal(err)
	}
}

// choose runs one scheduling cycle up to the choice of a node.
func (r *rig) choose(tb testing.TB, f framework.Framework, pod *v1.Pod) (scheduler.ScheduleResult, error) {
	tb.Helper()
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		tb.Fatal(err)
	}
	return r.sched.SchedulePod(r.ctx, f, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
}

// assume counts the pod on the node.
func (r *rig) assume(tb testing.TB, pod *v1.Pod, node string) {
	tb.Helper()
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = node
	if err := r.sched.Cache.AssumePod(r.logger, assumed); err != nil {
		tb.Fatal(err)
	}
	r.refresh(tb)
}

// totals are the scores of all nodes that pass.
func (r *rig) totals(tb testing.TB, pod *v1.Pod) map[string]int64 {
	tb.Helper()
	state, f := framework.NewCycleState(), r.all
	if _, status, _ := f.RunPreFilterPlugins(r.ctx, state, pod); !status.IsSuccess() {
		tb.Fatalf("PreFilter: %v", status)
	}
	infos, err := r.snapshot.NodeInfos().List()
	if err != nil {
		tb.Fatal(err)
	}
	var feasible []fwk.NodeInfo
	for _, info := range infos {
		if f.RunFilterPluginsWithNominatedPods(r.ctx, state, pod, info).IsSuccess() {
			feasible = append(feasible, info)
		}
	}
	if status := f.RunPreScorePlugins(r.ctx, state, pod, feasible); !status.IsSuccess() {
		tb.Fatalf("PreScore: %v", status)
	}
	scores, status := f.RunScorePlugins(r.ctx, state, pod, feasible)
	if !status.IsSuccess() {
		tb.Fatalf("Score: %v", status)
	}
	totals := map[string]int64{}
	for _, s := range scores {
		totals[s.Name] = s.TotalScore
	}
	return totals
}

// kind is a kind of node.
type kind struct {
	model         string
	gpus          int
	cores, gib    int
	dollarsPerDay int
}

var kinds = []kind{
	{"NVIDIA-A100-SXM4-80GB", 8, 96, 1024, 800}, {"NVIDIA-H100-80GB-HBM3", 8, 128, 1536, 1900}, {"Tesla-T4", 4, 48, 192, 90},
	{"NVIDIA-A10", 4, 64, 256, 140}, {"", 0, 64, 256, 75},
}

func nodeOf(i int) *v1.Node {
	k := kinds[i%len(kinds)]
	name := fmt.Sprintf("n%05d", i)
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name),
			Labels:      map[string]string{v1.LabelHostname: name, v1.LabelTopologyZone: fmt.Sprintf("z%d", i%3), "topology.kubernetes.io/rack": fmt.Sprintf("r%d", i/20)},
			Annotations: map[string]string{"berth.dev/price-per-hour": fmt.Sprintf("%.3f", float64(k.dollarsPerDay)/24)},
		},
		Status: v1.NodeStatus{
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
			Allocatable: v1.ResourceList{
				v1.ResourceCPU: *resource.NewQuantity(int64(k.cores), resource.DecimalSI), v1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dGi", k.gib)),
				v1.ResourcePods: resource.MustParse("250"),
			},
		},
	}
	if k.gpus > 0 {
		node.Labels["nvidia.com/gpu.product"], node.Labels["nvidia.com/gpu.count"] = k.model, fmt.Sprint(k.gpus)
		node.Status.Allocatable["nvidia.com/gpu"] = *resource.NewQuantity(int64(k.gpus), resource.DecimalSI)
	}
	return node
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
	requests := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(int64(milliCPU), resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(int64(memoryMiB)<<20, resource.BinarySI),
	}
	if gpus > 0 {
		requests["nvidia.com/gpu"] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
		Spec: v1.PodSpec{SchedulerName: profileName, Containers: []v1.Container{
			{Name: "c", Image: "registry.example/work:1", Resources: v1.ResourceRequirements{Requests: requests}},
		}},
	}
}
