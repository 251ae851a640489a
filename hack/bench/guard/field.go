package guard

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/pkg/wellknown"
)

const (
	// fieldRuns is how often a load is measured of each scheduler.
	fieldRuns = 3
	// fieldLimit is the virtual time after which a load counts as stalled.
	fieldLimit = 10 * time.Minute
	// runningPrefix begins the names of pods that run before a load comes, and of those that take their place.
	runningPrefix = "running-"
)

// FieldLoad is a load by which another scheduler is measured: pods that wait when the scheduler starts.
//
// Names with "kai" are the scale tests of https://github.com/NVIDIA/KAI-Scheduler, docs/scale-tests/README.md with
// test/e2e/scale/kwok_test.go. Priorities take the place of its queues, and what no node has that of a quota. The name
// with "kueue" is the TAS load of https://github.com/kubernetes-sigs/kueue, configs/tas/generator.yaml of
// test/performance/scheduler at commit cc13fff80cdc, where only a third of the gangs require a rack.
type FieldLoad struct {
	Name, Shows string
	nodes, gpus int
	// domains are the nodes of a domain, by the label that names it.
	domains    map[string]int
	contenders []contender
	// annotation of the PodGroup of a gang, and the level that is its value.
	annotation, level string
	// never is how many of the pods can never start.
	never int
}

const (
	blockLabel = "topology.kubernetes.io/block"

	kaiNodes, kaiLargeGang, kaiSingles, kaiGang, kueueGangs = 500, 250, 200, 512, 15_000
)

var (
	both      = []contender{stock, berth}
	onlyBerth = []contender{berth}
)

// kaiTopology has racks of two nodes, blocks of eight racks, zones of eight blocks.
var kaiTopology = map[string]int{wellknown.RackLabel: 2, blockLabel: 16, v1.LabelTopologyZone: 128}

// FieldLoads are measured on request.
var FieldLoads = []FieldLoad{
	{Name: "kai-fill", Shows: "4,000 pods of one GPU fill 500 nodes", nodes: kaiNodes, gpus: gpusPerNode,
		contenders: both},
	{Name: "kai-pending", Shows: "the same behind 400 pods that can never start", nodes: kaiNodes, gpus: gpusPerNode,
		contenders: both, never: 400},
	{Name: "kai-preferred", Shows: "a gang of 512 pods of 2 GPUs prefers a rack of two nodes, on 512 nodes",
		nodes: kaiGang, gpus: gpusPerNode, domains: kaiTopology, contenders: onlyBerth,
		annotation: wellknown.TopologyPreferredKey, level: wellknown.RackLabel},
	{Name: "kai-required", Shows: "the same gang requires one of four zones, which it fills (KAI: nothing)",
		nodes: kaiGang, gpus: gpusPerNode, domains: kaiTopology, contenders: onlyBerth,
		annotation: wellknown.TopologyRequiredKey, level: v1.LabelTopologyZone},
	{Name: "kai-reclaim", Shows: "a gang of 250 pods of 8 GPUs evicts 2,000 of 4,000 pods, which come again; with " +
		"stock, without a gang", nodes: kaiNodes, gpus: gpusPerNode, contenders: both},
	{Name: "kai-reclaim-pods", Shows: "200 pods of one GPU (KAI: 4,000) evict as many", nodes: kaiNodes, gpus: gpusPerNode,
		contenders: both},
	{Name: "kueue-tas", Shows: "15,000 gangs of 2 to 8 pods without GPUs require one of ten racks",
		nodes: 640, domains: map[string]int{wellknown.RackLabel: 64}, contenders: onlyBerth,
		annotation: wellknown.TopologyRequiredKey, level: wellknown.RackLabel},
}

// objects are the pods of the load, those that run before it, and PodGroups.
func (l *FieldLoad) objects(c contender) (objects []apiruntime.Object) {
	switch l.Name {
	case "kai-reclaim":
		return overFull(c, gangs(c.profile(), 1, kaiLargeGang, gpusPerNode))
	case "kai-reclaim-pods":
		return overFull(c, singles(c.profile(), kaiSingles, true))
	case "kai-preferred", "kai-required":
		return topological(gangs(c.profile(), 1, kaiGang, 2), l.annotation, l.level)
	case "kueue-tas":
		return topological(kueueWorkloads(c, kueueGangs), l.annotation, l.level)
	}
	for i := range l.never {
		objects = append(objects, gpuPod(c.profile(), fmt.Sprintf("never-%03d", i), 2*gpusPerNode))
	}
	return append(objects, singles(c.profile(), kaiNodes*gpusPerNode, true)...)
}

// topological sets an annotation of each PodGroup among objects.
func topological(objects []apiruntime.Object, key, level string) []apiruntime.Object {
	for _, object := range objects {
		if group, is := object.(*unstructured.Unstructured); is {
			group.SetAnnotations(map[string]string{key: level})
		}
	}
	return objects
}

// overFull are pods that take all GPUs of KAI's cluster, and objects whose pods have a higher priority.
func overFull(c contender, objects []apiruntime.Object) []apiruntime.Object {
	for _, object := range objects {
		if pod, is := object.(*v1.Pod); is {
			pod.Spec.Priority = ptr.To[int32](1000)
		}
	}
	full := running(kaiNodes*gpusPerNode, kaiNodes)
	for _, object := range full {
		object.(*v1.Pod).Spec.SchedulerName = c.profile()
	}
	return append(full, objects...)
}

// kueueWorkloads are gangs without GPUs. Of ten, seven have 2 pods of half a core, two have 4 of a core and
// a quarter, and one has 8 of two cores and a half: they ask for nine tenths of the CPU.
func kueueWorkloads(c contender, n int) []apiruntime.Object {
	var objects []apiruntime.Object
	for i := range n {
		members, milliCPU := 2, int64(500)
		switch i % 10 {
		case 3, 6:
			members, milliCPU = 4, 1250
		case 9:
			members, milliCPU = 8, 2500
		}
		name := fmt.Sprintf("gang-%05d", i)
		requests := v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI)}
		var pods []*v1.Pod
		for m := range members {
			pods = append(pods, pendingPod(namespace, fmt.Sprintf("%s-%d", name, m), c.profile(), requests))
		}
		objects = append(objects, gangOf(name, pods)...)
	}
	return objects
}

// FieldRow is what a load takes. CPU is that of the whole process.
type FieldRow struct {
	Scheduler string  `json:"scheduler" row:"scheduler"`
	Pods      int     `json:"pods" column:"pods|%.0f"`
	Placed    int     `json:"placed" column:"placed|%.0f"`
	Evicted   int     `json:"evicted" column:"evicted|%.0f"`
	Nodes     int     `json:"nodes" column:"nodes with them|%.0f"`
	PodMillis float64 `json:"podMillis" column:"CPU ms a placed pod|%.2f"`
	Seconds   float64 `json:"virtualSeconds" column:"virtual s until the last|%.1f"`
}

// Measure measures the load with each scheduler in turn.
func (l *FieldLoad) Measure(ctx context.Context, out io.Writer, profiles string) ([]FieldRow, error) {
	// One processor, as for the figures.
	return rowsOf[FieldRow](ctx, out, Child{Name: l.Name, Profiles: profiles}, l.contenders, fieldRuns, "GOMAXPROCS=1")
}

// measure takes one row in this process.
func (l *FieldLoad) measure(c contender) (r FieldRow, err error) {
	_, err = c.inWorldOf(l.nodes, l.gpus, func(w *world) (float64, error) {
		if err := w.group(l.domains); err != nil {
			return 0, err
		}
		objects := l.objects(c)
		for _, object := range objects {
			if pod, is := object.(*v1.Pod); is && pod.Spec.NodeName == "" {
				r.Pods++
			}
		}
		if err := w.create(objects...); err != nil {
			return 0, err
		}
		began, last, used := time.Now(), time.Now(), map[string]bool{}
		w.api.Observe = func(e memapi.Event) {
			pod, is := e.Object.(*v1.Pod)
			switch {
			case !is:
			case e.Type == memapi.Deleted:
				r.Evicted++
				// Its controller makes another. The API is locked here, so that this has to happen elsewhere.
				again := gpuPod(c.profile(), fmt.Sprintf("%sagain-%06d", runningPrefix, r.Evicted), 1)
				go func() { _ = w.api.Create(again) }()
			case strings.HasPrefix(pod.Name, runningPrefix), e.Type == memapi.Added, pod.Spec.NodeName == "":
			case e.Old.(*v1.Pod).Spec.NodeName == "":
				r.Placed++
				last, used[pod.Spec.NodeName] = time.Now(), true
			}
		}
		runtime.GC()
		before := rig.UsedCPU()
		if err := w.run(); err != nil {
			return 0, err
		}
		for r.Placed < r.Pods-l.never && time.Since(began) < fieldLimit {
			time.Sleep(time.Second) //nolint:forbidigo // virtual time
			w.settle()
		}
		r.Scheduler, r.Nodes, r.Seconds = string(c), len(used), last.Sub(began).Seconds()
		r.PodMillis = 1000 * (rig.UsedCPU() - before).Seconds() / float64(max(1, r.Placed))
		return 0, nil
	})
	return r, err
}

// group puts consecutive nodes into domains.
func (w *world) group(domains map[string]int) error {
	for i := range w.nodes {
		err := w.api.Change(v1.SchemeGroupVersion.WithResource("nodes"), types.NamespacedName{Name: nodeName(i)},
			func(object apiruntime.Object) {
				for label, size := range domains {
					object.(*v1.Node).Labels[label] = fmt.Sprintf("domain-%03d", i/size)
				}
			})
		if err != nil {
			return fmt.Errorf("grouping the nodes: %w", err)
		}
	}
	return nil
}
