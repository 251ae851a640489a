package tool_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/cluster/dump"
	"berth.dev/berth/pkg/cluster/inputs"
	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/explain"
	"berth.dev/berth/pkg/lab/replay"
	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/trace"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/validate"
	"berth.dev/berth/test/harness/require"
)

// namedConfig knows GPUs by names of its own, and prices nodes.
const namedConfig = "../scenarios/testdata/config/names.yaml"

func named(t *testing.T) *schedulerconfig.Configuration {
	t.Helper()
	c, err := schedulerconfig.Load(namedConfig)
	require.NoError(t, err)
	return c
}

func namedNode(name, model, gpus string) *v1.Node {
	has := v1.ResourceList{
		"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110"),
		"example.com/accelerator": resource.MustParse(gpus),
	}
	labels := map[string]string{"example.com/model": model, "example.com/count": gpus, "kubernetes.io/hostname": name}
	return &v1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels},
		Status: v1.NodeStatus{Capacity: has, Allocatable: has,
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}},
	}
}

func namedPod(name, node string, gpus string) *v1.Pod {
	asks := v1.ResourceList{"cpu": resource.MustParse("1"), "example.com/accelerator": resource.MustParse(gpus)}
	return &v1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), Labels: map[string]string{
			"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "4",
		}},
		Spec: v1.PodSpec{NodeName: node, SchedulerName: "gang-scheduler", Containers: []v1.Container{{
			Name: "c", Image: "i", Resources: v1.ResourceRequirements{Requests: asks, Limits: asks},
		}}},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
}

func namedTrace() replay.Input {
	return replay.NewInput("named", []trace.Node{
		{Name: "big", CPUMilli: 64_000, MemoryMiB: 256 << 10, GPUs: 8, Model: "Big"},
		{Name: "small", CPUMilli: 64_000, MemoryMiB: 256 << 10, GPUs: 8, Model: "Small", Spot: true},
	}, []trace.Job{
		{Name: "any", Pods: 4, CPUMilli: 1000, MemoryMiB: 1024, GPUs: 2, GPUMilli: 1000, Duration: time.Hour,
			Spot: "tolerate"},
		{Name: "choosy", Pods: 4, CPUMilli: 1000, MemoryMiB: 1024, GPUs: 2, GPUMilli: 1000, Duration: time.Hour,
			Models: []string{"Small"}, Spot: "require"},
	})
}

func TestReplaysKnowTheGPUsAndPricesOfTheConfiguration(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rates *price.ModelRates
		// dollars of both nodes an hour.
		want float64
	}{
		// 64 × $0.03, 256 × $0.004 and 8 × $5.
		"by its table and its default rates": {nil, 40 + 42.944},
		"by rates that are given": {&price.ModelRates{Core: 10_000, GPU: map[string]price.MicroDollars{"Big": 3_000_000,
			"Small": 1_000_000}},
			0.64 + 24 + 0.64 + 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := namedTrace()
			in.Rates, in.RatesName = tc.rates, "prices.csv"
			r, err := replay.Run(t.Context(), named(t), in, replay.Options{Mode: replayed.VirtualTime})
			require.NoError(t, err)
			if r.Placed != 8 || r.Pending != 0 || r.AllocatedMilli == 0 || r.NodesUnpriced != 0 || r.MicroDollars == 0 ||
				r.SpotMilli == 0 {
				t.Errorf("%d pods placed, %d pending, %d milli-GPU allocated, %d nodes without a price, a bill of %d "+
					"micro-dollars, %d milli-GPU of spot",
					r.Placed, r.Pending, r.AllocatedMilli, r.NodesUnpriced, r.MicroDollars, r.SpotMilli)
			}
			if perHour := float64(r.PricesMicroDollars) / 1e6; perHour < 0.99*tc.want || perHour > 1.01*tc.want {
				t.Errorf("$%.2f an hour, want $%.2f", perHour, tc.want)
			}
		})
	}
}

func TestAnExplanationKnowsTheGPUsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	objects := []runtime.Object{namedNode("a", "Big", "2"), namedNode("b", "Small", "4"), namedNode("c", "Big", "1")}
	for i := range 4 {
		objects = append(objects, namedPod(fmt.Sprint("g-", i), "", "1"))
	}
	e, err := explain.Pod(explain.Question{Configuration: named(t), Objects: objects, Pod: objects[3].(*v1.Pod),
		Now: time.Now()})
	require.NoError(t, err)
	if e.Gang == nil || len(e.Gang.Assignments) != 4 ||
		slices.ContainsFunc(e.Gang.Assignments, func(a explain.Assignment) bool { return a.Node != "b" }) {
		t.Errorf("the gang: %+v, want four members on the node of the model Small", e.Gang)
	}
}

func TestAnOverviewKnowsTheGPUsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	c := named(t)
	prices, rates, err := c.Prices("")
	require.NoError(t, err)
	b := overview.NewStore(c.GPUKeys(""), overview.Pricing{Of: prices, Rates: rates}, c.NetworkLevels())
	b.Set(namedNode("a", "Big", "8"))
	pod := namedPod("p", "a", "3")
	pod.Status.Phase = v1.PodRunning
	b.Set(pod)
	if got := b.Cluster(time.Now()).Totals; got.GPUs != 8 || got.AllocatedMilliGPU != 3000 ||
		got.MicroDollarsPerHour != 40_000_000 {
		t.Errorf("totals: %+v", got)
	}
}

func TestManifestsAreHeldAgainstTheGPUsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	configuration, err := os.ReadFile(namedConfig)
	require.NoError(t, err)
	node := `apiVersion: v1
kind: Node
metadata: {name: gpu-0, labels: {example.com/model: Big, example.com/count: "8", example.com/memory: "81920"}}
status: {allocatable: {cpu: "64", example.com/accelerator: "8"}}
`
	pod := func(resource, model string) string {
		return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: p, annotations: {berth.dev/gpu-models: %s}}
spec: {schedulerName: gang-scheduler, containers: [{name: c, image: i, resources: {limits: {%s: "1"}}}]}
`, model, resource)
	}
	for name, tc := range map[string]struct{ pod, want string }{
		"a model that is there": {pod("example.com/accelerator", "Big"), ""},
		"a model that is not there": {pod("example.com/accelerator", "Huge"),
			"no node in the files has a GPU of the model Huge; the nodes have Big"},
		"a misspelt resource": {pod("example.com/acelerator", "Big"),
			"unknown resource example.com/acelerator; did you mean example.com/accelerator?"},
	} {
		for _, order := range [][]string{{string(configuration), node, tc.pod}, {tc.pod, node, string(configuration)}} {
			found := findings(t, strings.Join(order, "---\n"))
			if tc.want == "" && len(found) > 0 || tc.want != "" && (len(found) != 1 || !strings.Contains(found[0], tc.want)) {
				t.Errorf("%s: found %q, want %q", name, found, tc.want)
			}
		}
	}
	r := &validate.Report{}
	require.NoError(t, r.Read(strings.NewReader(pod("example.com/accelerator", "Huge")), "p.yaml"))
	require.NoError(t, r.Read(bytes.NewReader(configuration), "c.yaml"))
	r.AddCluster([]v1.Node{*namedNode("n", "Big", "8")}, nil)
	r.Finish()
	if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Message, "in the cluster has a GPU of the model Huge") {
		t.Errorf("with the nodes of a cluster: %v", r.Findings)
	}
}

func TestADumpKeepsTheModelsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	keys := named(t).GPUKeys("")
	h := dump.NewNameHasher([]byte("key"), &keys)
	node := namedNode("a", "Big", "8")
	node.Labels["example.com/team"] = "secret"
	pod := namedPod("p", "", "1")
	pod.Annotations = map[string]string{"berth.dev/gpu-models": "Big"}
	var out [2]runtime.Object
	for i, obj := range []runtime.Object{node, pod} {
		kept, err := inputs.Keep(obj)
		require.NoError(t, err)
		hashed, err := h.Hash(kept)
		require.NoError(t, err)
		out[i] = hashed
	}
	labels := out[0].(*v1.Node).Labels
	if labels["example.com/model"] != "Big" || labels["example.com/count"] != "8" ||
		labels["example.com/team"] == "secret" {
		t.Errorf("labels of the node: %v", labels)
	}
	if got := out[1].(*v1.Pod).Annotations["berth.dev/gpu-models"]; got != "Big" {
		t.Errorf("models of the pod: %q", got)
	}
}
