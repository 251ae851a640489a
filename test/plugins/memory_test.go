package plugins_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/framework"
	"berth.dev/berth/test/harness/objects"
	"berth.dev/berth/test/harness/require"
)

// everyPlugin has a profile with all plugins of ours.
const everyPlugin = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: berth-scheduler
  plugins:
    queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
    postFilter: {enabled: [{name: Coscheduling}]}
    multiPoint: {enabled: [{name: Coscheduling}, {name: GPUAware, weight: 20}, {name: CostOptimized, weight: 20}, {name: NetworkTopology, weight: 10},
      {name: PlacementPolicy, weight: 20}, {name: IPReservation}, {name: SLAAware, weight: 20}]}
  pluginConfig:
  - {name: PodTopologySpread, args: {defaultingType: List}}
  - {name: CostOptimized, args: {windows: [{name: night, from: "22:00", to: "06:00"}]}}
`

// claimedDriver is one whose devices every plugin takes for GPUs.
const claimedDriver = "gpu.nvidia.com"

// tenants are a cluster in memory, with a scheduler, and what tenants do in it.
type tenants struct {
	world *simulation.World
	// made is what is to be deleted at the end of the round.
	made []runtime.Object
}

// startTenants runs the scheduler until the test ends.
func startTenants(t *testing.T) *tenants {
	t.Helper()
	configuration, err := schedulerconfig.Parse("all plugins", []byte(everyPlugin))
	require.NoError(t, err)
	w := simulation.NewWorld()
	w.API.StartPods = true
	framework.Create(t, w.API, objects.Namespace("default"), objects.DeviceClass("gpu", claimedDriver),
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000},
		customObject(t, `IPPool any {releasePolicy: OnPodDeletion, subnets: [{ranges: [10.0.0.0/16]}]}`),
		customObject(t, `PlacementPolicy tools {licenses: [{name: matlab, count: 3}], datasets: [{name: d, nodes: {selector: {matchLabels: {rack: r1}}}}]}`))
	t.Cleanup(w.Stop)
	require.NoError(t, w.Start(simulation.Setup{Config: configuration, Parallelism: 1}))
	w.Run()
	return &tenants{world: w}
}

func (c *tenants) make(t *testing.T, all ...runtime.Object) {
	t.Helper()
	framework.Create(t, c.world.API, all...)
	c.made = append(c.made, all...)
}

// round has nodes, pods, gangs and claims come, with names and values that there have not been, and returns what is
// held while they are there. All go in the end.
func (c *tenants) round(t *testing.T, number int) (peak map[string]int) {
	t.Helper()
	name := func(text string, i int) string { return fmt.Sprintf("r%d-%s-%d", number, text, i) }
	for i := range 8 {
		offers, node := []string{"cpu", "32", "memory", "256Gi"}, objects.Node(name("node", i))
		labels := []string{v1.LabelHostname, name("node", i), "rack", fmt.Sprint("r", i%2), v1.LabelTopologyZone,
			name("zone", i%2), "nvidia.com/gpu.product", "Tesla-T4"}
		switch {
		case i < 4:
			offers = append(offers, "nvidia.com/gpu", "8")
		case i == 4:
			offers = append(offers, "nvidia.com/gpu", "10")
			node.Annotation("hami.io/node-nvidia-register", "GPU-a,10,16384,100,NVIDIA-Tesla T4,0,true:")
		case i < 6:
			offers = append(offers, "nvidia.com/gpu", "4")
			labels = append(labels, "berth.dev/gpu-mode", "shared", "berth.dev/gpu-agent", "ours")
		default:
			c.make(t, objects.Slice(claimedDriver, name("node", i), objects.GPUs(4, nil)...))
		}
		node.Capacity(objects.Pairs[v1.ResourceName](append(offers, "pods", "110")))
		c.make(t, atPrice(node, fmt.Sprintf("%d.%02d", 10+i, number), labels...))
	}
	for i, asks := range []func(*st.PodWrapper) *st.PodWrapper{
		func(p *st.PodWrapper) *st.PodWrapper { return p.Annotation(spotKey, "tolerate") },
		func(p *st.PodWrapper) *st.PodWrapper { return p.Label("app", name("app", 0)) },
		func(p *st.PodWrapper) *st.PodWrapper { return p.Annotation("berth.dev/licenses", "matlab") },
		func(p *st.PodWrapper) *st.PodWrapper { return p.Annotation("berth.dev/licenses", "matlab=3") },
		func(p *st.PodWrapper) *st.PodWrapper { return p.Annotation("berth.dev/datasets", "d") },
		func(p *st.PodWrapper) *st.PodWrapper { return p.Annotation("berth.dev/ip-pool", "any") },
		func(p *st.PodWrapper) *st.PodWrapper { return p.Annotation("berth.dev/ip-pool", name("pool", 0)) },
		func(p *st.PodWrapper) *st.PodWrapper { return p.Annotation(windowKey, "night") },
		func(p *st.PodWrapper) *st.PodWrapper { return p.Annotation("berth.dev/slo-latency-ms", "100") },
		func(p *st.PodWrapper) *st.PodWrapper { return p.Annotation("berth.dev/gpu-models", name("model", 0)) },
		func(p *st.PodWrapper) *st.PodWrapper {
			return p.Annotation("berth.dev/gpu-models", " ?"+name("bad", 0))
		},
	} {
		c.make(t, asks(objects.Pod(name("pod", i), "cpu", "1", "nvidia.com/gpu", "1").SchedulerName(profileName)).Obj())
		c.make(t, asks(objects.Pod(name("share", i), "cpu", "1").SchedulerName(profileName).Annotation("gpu-fraction",
			"0.5")).Obj())
	}
	c.make(t, objects.Pod(name("hami", 0), "cpu", "1", "nvidia.com/gpu", "1", "nvidia.com/gpumem",
		fmt.Sprint(1000+number)).SchedulerName(profileName).Obj())
	c.make(t, objects.Pod(name("never", 0), "nvidia.com/gpu", fmt.Sprint(100+number)).SchedulerName(profileName).Obj())
	for i := range 3 {
		c.make(t, objects.ClaimOf(name("claim", i), objects.Request("gpus", "gpu", 1)),
			objects.UseClaim(objects.Pod(name("claims", i), "cpu", "1").SchedulerName(profileName).Obj(), name("claim", i)))
	}
	// A gang that starts, one that is not complete, one that does not fit, and one of a Job.
	for i, size := range []int{4, 2, 6} {
		gang := name("gang", i)
		minimum, gpus := max(size, 4), []string{"1", "1", "8"}[i]
		c.make(t, podGroup(gang, minimum))
		for m := range size {
			c.make(t, objects.Pod(fmt.Sprint(gang, "-", m), "cpu", "1", "nvidia.com/gpu", gpus).SchedulerName(profileName).
				Label("scheduling.x-k8s.io/pod-group", gang).Obj())
		}
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name("job", 0),
		UID: types.UID(name("job", 0))},
		Spec: batchv1.JobSpec{Parallelism: new(int32(3)), Completions: new(int32(3))}}
	c.make(t, job)
	for m := range 3 {
		pod := objects.Pod(fmt.Sprint(job.Name, "-", m), "cpu", "1", "nvidia.com/gpu",
			"1").SchedulerName(profileName).Annotation("berth.dev/gang", "true").Obj()
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job,
			batchv1.SchemeGroupVersion.WithKind("Job"))}
		c.make(t, pod)
	}
	pass(2 * minute)
	// These need the nodes of others, as members of a gang or each for itself.
	c.make(t, podGroup(name("urgent", 0), 2))
	for m := range 2 {
		c.make(t, objects.Pod(fmt.Sprint(name("urgent", 0), "-", m), "cpu", "1", "nvidia.com/gpu",
			"8").SchedulerName(profileName).Priority(500).
			Label("scheduling.x-k8s.io/pod-group", name("urgent", 0)).Obj())
	}
	for i := range 3 {
		c.make(t, objects.Pod(name("high", i), "cpu", "1", "nvidia.com/gpu",
			"8").SchedulerName(profileName).Priority(1000).Obj())
	}
	peak = c.sizes()
	for range 6 {
		pass(20 * second)
		for field, n := range c.sizes() {
			peak[field] = max(peak[field], n)
		}
	}
	slices.Reverse(c.made)
	for _, object := range c.made {
		c.remove(t, object)
	}
	c.made = nil
	pass(hour)
	return peak
}

// remove deletes an object if it is there: pods are evicted.
func (c *tenants) remove(t *testing.T, object runtime.Object) {
	t.Helper()
	m := object.(metav1.Object)
	key := types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
	c.world.API.Delete(resourceOf(t, object), key)
}

func resourceOf(t *testing.T, object runtime.Object) schema.GroupVersionResource {
	t.Helper()
	kind := object.GetObjectKind().GroupVersionKind()
	if kind.Empty() {
		kinds, _, err := scheme.Scheme.ObjectKinds(object)
		require.NoError(t, err)
		kind = kinds[0]
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return resource
}

// podGroup makes a group of the default namespace.
func podGroup(name string, minimum int) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1",
		"kind": "PodGroup",
		"spec": map[string]any{"minMember": int64(minimum)}}}
	o.SetNamespace("default")
	o.SetName(name)
	o.SetUID(types.UID(name))
	return o
}

// sizes counts what the plugins hold when nothing runs: the walk must not read a map that a goroutine writes.
func (c *tenants) sizes() map[string]int {
	synctest.Wait()
	return sizesOf(c.roots()...)
}

// roots are the plugins, and what gives them candidates.
func (c *tenants) roots() []any {
	var roots []any
	for _, profile := range c.world.Profiles {
		roots = append(roots, profile)
		for _, plugin := range profile.EnqueueExtensions() {
			roots = append(roots, plugin)
		}
	}
	return roots
}

// worked are fields of each plugin that hold something while its pods are there: without them, the test would show
// nothing.
var worked = []string{
	"pkg/process/informers.ByNode.byName", "pkg/gang.store.groups", "pkg/gang/status.record.waits",
	"pkg/gang/status.Owners.gangs", "pkg/plugins/costoptimized.waiting.pods",
	"pkg/plugins/costoptimized.runningPods.gangs",
	"pkg/gpu.Histogram.controllers", "pkg/plugins/gpuaware.ledger.byPod", "pkg/address.Ledger.reserved",
	"pkg/policy.Ledger.pods",
}

// bounded are the maps and lists that may grow with what is gone: a number bounds how many entries they have, and how
// long the texts in them are.
var bounded = map[string]string{
	"pkg/gang/plan.Planner.tables":             "8 choices of levels (maxPathTables)",
	"pkg/gang/tree.Group.Roles":                "512 groups of 32 roles (maxGroups, maxRoles)",
	"pkg/gang/waiting.Backlog.shapes":          "16,384 shapes (mostShapes)",
	"pkg/gpu.strandingShard.values":            "65,536 packing values a shard (maxCached)",
	"pkg/gpu.streams.pods":                     "100 streams of each model of the nodes (streamCount)",
	"pkg/plugins/costoptimized.Plugin.offers":  "1024 kinds of nodes (maxOffers)",
	"pkg/plugins/placementpolicy.view.demands": "65,536 pods (maxDemands)",
	"pkg/process/informers.recent.old":         "2048 values (mostRecent)",
	"pkg/process/informers.recent.young":       "2048 values (mostRecent)",
	"pkg/process/informers.sharing.labels":     "2048 maps of at most 16 entries (mostRecent, mostEntries)",
}

// Tenants create and delete as many pods as they like, with any text in them. What is gone leaves nothing behind, but
// in maps that a number bounds.
func TestNothingGrowsWithWhatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		passUntil(t, "2026-11-18T08:00:00Z") // before the window of the night
		c, peak := startTenants(t), map[string]int{}
		var after []map[string]int
		for number := range 5 {
			for field, n := range c.round(t, number) {
				peak[field] = max(peak[field], n)
			}
			after = append(after, c.sizes())
		}
		for _, field := range worked {
			if peak[field] == 0 {
				t.Errorf("%s holds nothing while the pods are there", field)
			}
		}
		for _, field := range slices.Sorted(maps.Keys(peak)) {
			var left []int
			for _, held := range after {
				left = append(left, held[field])
			}
			// Each round has new names. Caches that are made again from time to time go up and down.
			grows := true
			for i := range left[1:] {
				grows = grows && left[i] < left[i+1]
			}
			if grows && bounded[field] == "" {
				t.Errorf("%s keeps %v entries of what is gone, and has no bound", field, left)
			}
		}
	})
}
