package gpuaware

import (
	"context"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/claimview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process/informers"
)

// podsByNode is the index by which a node's pods are found outside of a scheduling cycle.
const podsByNode = "berth.dev/GPUAware.node"

var (
	descTotal          = descByModel("berth_gpu_devices", "GPUs, by model.")
	descFree           = descByModel("berth_gpu_free", "Compute of healthy GPUs that no pod holds, in GPUs, by model.")
	descAllocated      = descByModel("berth_gpu_allocated", "Compute of GPUs that pods hold, in GPUs, by model.")
	descUnhealthy      = descByModel("berth_gpu_unhealthy", "GPUs that the node does not give out, by model.")
	descExpectedUnused = descByModel("berth_gpu_expected_unused",
		"Free compute, in GPUs, that work like that which runs is expected to leave unused, by model.")
	descFragmented = descByModel("berth_gpu_fragmentation_ratio",
		"Share of the free compute that is on partly taken GPUs, by model.")
	descMemory = descByModel("berth_gpu_memory_fragmentation_ratio",
		"Share of the free memory of shared GPUs that is on partly taken GPUs, by model.")
	descHits = metrics.NewDesc("berth_gpu_packing_cache_hits_total",
		"Packing values that were found in the cache.", nil, nil, metrics.ALPHA, "")
	descMisses = metrics.NewDesc("berth_gpu_packing_cache_misses_total",
		"Packing values that had to be computed.", nil, nil, metrics.ALPHA, "")
)

func descByModel(name, help string) *metrics.Desc {
	return metrics.NewDesc(name, help, []string{"model"}, nil, metrics.ALPHA, "")
}

var (
	edits = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "berth_gpu", Name: "edited_pods_total", StabilityLevel: metrics.ALPHA,
		Help: "Running pods whose annotations about GPUs were changed by others. They keep the devices that they were given.",
	})
	unassigned = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "berth_gpu", Name: "unassigned_pods_total", StabilityLevel: metrics.ALPHA,
		Help: "Pods that came to a node with GPUs in their annotations which this scheduler had not assigned. These count " +
			"for nothing.",
	})
)

// nodeCounts counts the GPUs for the metrics endpoint, from the informers and outside of scheduling cycles. Only nodes
// that changed since the last scrape are counted again.
type nodeCounts struct {
	shared *shared
	pods   cache.Indexer
	nodes  cache.Store
	// reading is held to read a node and to mark it, so that no older state of it is counted last.
	reading sync.Mutex

	mu    sync.Mutex
	dirty map[string]struct{}
	// parts are the counts of each node, one for each resource under which it offers GPUs.
	parts map[string][]count
	// claimable is what could be claimed at the last scrape.
	claimable *claimview.State
}

// count is the GPUs that one node offers under one resource, or all of a model.
type count struct {
	model                            string
	total, unhealthy                 int
	freeMilli, allocatedMilli        int
	expectedUnusedMilli              float64
	freeOnPartlyTaken                int
	freeMemMiB, freeMemOnPartlyTaken int
}

func (c *count) add(o count) {
	c.total += o.total
	c.unhealthy += o.unhealthy
	c.freeMilli += o.freeMilli
	c.allocatedMilli += o.allocatedMilli
	c.expectedUnusedMilli += o.expectedUnusedMilli
	c.freeOnPartlyTaken += o.freeOnPartlyTaken
	c.freeMemMiB += o.freeMemMiB
	c.freeMemOnPartlyTaken += o.freeMemOnPartlyTaken
}

// markNodeOf marks the node of a pod as changed.
func (f *nodeCounts) markNodeOf(pod *v1.Pod) {
	if pod.Spec.NodeName == "" {
		return
	}
	f.mu.Lock()
	_, known := f.dirty[pod.Spec.NodeName]
	f.mu.Unlock()
	if !known {
		f.mark(pod.Spec.NodeName)
	}
}

// mark marks a node as changed. Names of nodes that do not exist, and of nodes that come and go between two scrapes,
// are not kept: users may put pods on any name.
func (f *nodeCounts) mark(node string) {
	if _, exists, _ := f.nodes.GetByKey(node); !exists {
		f.mu.Lock()
		defer f.mu.Unlock()
		if _, counted := f.parts[node]; counted {
			f.dirty[node] = struct{}{}
		} else {
			delete(f.dirty, node)
		}
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dirty[node] = struct{}{}
}

// byModel counts the changed nodes and sums all up.
func (f *nodeCounts) byModel() map[string]count {
	claimable := f.shared.claims.Recent()
	f.mu.Lock()
	defer f.mu.Unlock()
	demand := f.shared.views.totals.demandNow()
	for _, state := range []*claimview.State{f.claimable, claimable} {
		for name := range state.Names() {
			f.dirty[name] = struct{}{} // devices are given back long after the pod has gone
		}
	}
	f.claimable = claimable
	for name := range f.dirty {
		delete(f.parts, name)
		if obj, ok, _ := f.nodes.GetByKey(name); ok {
			if parts := f.count(obj.(*v1.Node), claimable, demand); len(parts) > 0 {
				f.parts[name] = parts
			}
		}
	}
	clear(f.dirty)
	sums := map[string]count{}
	for _, name := range slices.Sorted(maps.Keys(f.parts)) {
		for _, part := range f.parts[name] {
			sum := sums[part.model]
			sum.add(part)
			sums[part.model] = sum
		}
	}
	return sums
}

// count counts one node, each resource under which it offers GPUs on its own: they may be of several makers and models.
// What is expected to stay unused is counted with the mix as it was when the node last changed.
func (f *nodeCounts) count(node *v1.Node, claimable *claimview.State, demand *gpu.Demand) []count {
	keys := f.shared.views.keys
	seen, _ := keys.ReadGPUNode(node)
	if seen.GPUs() == 0 && claimable.Devices(node.Name) == nil {
		return nil
	}
	info := framework.NewNodeInfo()
	info.SetNode(node)
	objects, err := f.pods.ByIndex(podsByNode, node.Name)
	if err != nil {
		return nil
	}
	for _, obj := range objects {
		info.AddPod(obj.(*v1.Pod))
	}
	var parts []count
	for i, pool := range seen.Pools() {
		var inv *gpu.Inventory
		if i == 0 {
			inv = claimable.Inventory(seen, info)
		}
		if inv == nil {
			inv = keys.Inventory(pool, info, f.shared.ledger.of, "")
		}
		if part := countInventory(inv, demand); part.total > 0 {
			parts = append(parts, part)
		}
	}
	return parts
}

func countInventory(inv *gpu.Inventory, demand *gpu.Demand) count {
	c := count{model: inv.Model, total: len(inv.Devices) + inv.SlicedGPUs}
	if c.model == "" {
		c.model = "unknown"
	}
	for _, d := range inv.Devices {
		if d.Unhealthy {
			c.unhealthy++
			continue
		}
		c.freeMilli += d.FreeMilli
		c.allocatedMilli += gpu.WholeMilli - d.FreeMilli
		if d.FreeMilli < gpu.WholeMilli {
			c.freeOnPartlyTaken += d.FreeMilli
		}
		if inv.Mode == gpu.ModeShared {
			c.freeMemMiB += d.FreeMemMiB
			if d.FreeMilli < gpu.WholeMilli {
				c.freeMemOnPartlyTaken += d.FreeMemMiB
			}
		}
	}
	if inv.TimeSliced() {
		c.freeMilli = inv.FreeReplicas * gpu.WholeMilli / inv.Replicas
		c.allocatedMilli = max(0, (c.total-c.unhealthy)*gpu.WholeMilli-c.freeMilli)
	}
	if inv.SlicedGPUs > 0 {
		c.freeMilli += inv.FreeSlicedMilli()
		c.allocatedMilli += inv.SlicedGPUs*gpu.WholeMilli - inv.FreeSlicedMilli()
	}
	if demand.Known() {
		c.expectedUnusedMilli = demand.Stranding().Expected(inv)
	}
	return c
}

var (
	published = informers.NewPublished(descTotal, descFree, descAllocated, descUnhealthy,
		descExpectedUnused, descFragmented, descMemory, descHits, descMisses)
	registerCounters = sync.OnceFunc(func() { legacyregistry.MustRegister(edits, unassigned) })
)

// onEndpoint is the state whose counts are on the metrics endpoint.
type onEndpoint struct{ *shared }

// publish offers the counts of the first profiles of a scheduler as metrics until ctx ends. Profiles that read the same
// nodes under different names would count them twice.
func publish(ctx context.Context, factory kubeinformers.SharedInformerFactory, c *shared) error {
	registerCounters()
	_, err := informers.Shared(factory, func() (onEndpoint, error) {
		published.Publish(ctx, c)
		return onEndpoint{c}, nil
	})
	return err
}

// Collect counts.
func (c *shared) Collect(ch chan<- metrics.Metric) {
	sums, values := c.counts.byModel(), c.views.totals.cacheCounts()
	gauge := func(d *metrics.Desc, value float64, labels ...string) {
		ch <- metrics.NewLazyConstMetric(d, metrics.GaugeValue, value, labels...)
	}
	for model, n := range sums {
		gauge(descTotal, float64(n.total), model)
		gauge(descFree, float64(n.freeMilli)/gpu.WholeMilli, model)
		gauge(descAllocated, float64(n.allocatedMilli)/gpu.WholeMilli, model)
		gauge(descUnhealthy, float64(n.unhealthy), model)
		gauge(descExpectedUnused, n.expectedUnusedMilli/gpu.WholeMilli, model)
		gauge(descFragmented, ratio(n.freeOnPartlyTaken, n.freeMilli), model)
		gauge(descMemory, ratio(n.freeMemOnPartlyTaken, n.freeMemMiB), model)
	}
	ch <- metrics.NewLazyConstMetric(descHits, metrics.CounterValue, float64(values.hits))
	ch <- metrics.NewLazyConstMetric(descMisses, metrics.CounterValue, float64(values.misses))
}

// ratio is 0 for a whole of 0: nothing is not fragmented.
func ratio(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// watchPods keeps the index of pods by node.
func (f *nodeCounts) watchPods(informer cache.SharedIndexInformer) error {
	if _, ok := informer.GetIndexer().GetIndexers()[podsByNode]; ok {
		return nil
	}
	return informer.AddIndexers(cache.Indexers{podsByNode: func(obj any) ([]string, error) {
		if pod, ok := obj.(*v1.Pod); ok && pod.Spec.NodeName != "" && !podview.Finished(pod) {
			return []string{pod.Spec.NodeName}, nil
		}
		return nil, nil
	}})
}
