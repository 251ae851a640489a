package gpuaware

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process/informers"
)

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

// count is the GPUs of a model.
type count struct {
	total, unhealthy                 int
	freeMilli, allocatedMilli        int
	expectedUnusedMilli              float64
	freeOnPartlyTaken                int
	freeMemMiB, freeMemOnPartlyTaken int
}

// byModel counts the GPUs of all nodes for the metrics endpoint, from the informers and outside of scheduling cycles.
func (c *shared) byModel() map[string]count {
	claimable, demand := c.claims.Recent(), c.views.totals.demandNow()
	offers, infos := map[string]*gpuview.Node{}, map[string]*framework.NodeInfo{}
	for _, obj := range c.nodes.List() {
		node := obj.(*v1.Node)
		seen, _ := c.views.keys.ReadGPUNode(node)
		if seen.GPUs() > 0 || claimable.Devices(node.Name) != nil {
			offers[node.Name], infos[node.Name] = seen, framework.NewNodeInfo()
			infos[node.Name].SetNode(node)
		}
	}
	for _, obj := range c.pods.List() {
		pod := obj.(*v1.Pod)
		if info := infos[pod.Spec.NodeName]; info != nil && !podview.Finished(pod) {
			info.AddPod(pod)
		}
	}
	sums := map[string]count{}
	for _, name := range slices.Sorted(maps.Keys(offers)) {
		// The resources under which a node offers GPUs may be of several makers and models.
		for i, pool := range offers[name].Pools() {
			var inv *gpu.Inventory
			if i == 0 {
				inv = claimable.Inventory(pool, infos[name])
			}
			if inv == nil {
				inv = c.views.keys.Inventory(pool, infos[name], c.ledger.of, "")
			}
			countInventory(sums, inv, demand)
		}
	}
	return sums
}

// countInventory adds the GPUs that a node offers under one resource to those of their model.
func countInventory(sums map[string]count, inv *gpu.Inventory, demand *gpu.Demand) {
	whole := len(inv.Devices)
	if whole+inv.SlicedGPUs == 0 {
		return
	}
	model := cmp.Or(inv.Model, "unknown")
	c, unhealthy, free, allocated := sums[model], 0, 0, 0
	for _, d := range inv.Devices {
		if d.Unhealthy {
			unhealthy++
			continue
		}
		free += d.FreeMilli
		allocated += gpu.WholeMilli - d.FreeMilli
		partlyTaken := d.FreeMilli < gpu.WholeMilli
		if partlyTaken {
			c.freeOnPartlyTaken += d.FreeMilli
		}
		if inv.Mode == gpu.ModeShared {
			c.freeMemMiB += d.FreeMemMiB
			if partlyTaken {
				c.freeMemOnPartlyTaken += d.FreeMemMiB
			}
		}
	}
	if inv.TimeSliced() {
		free = inv.FreeReplicas * gpu.WholeMilli / inv.Replicas
		allocated = max(0, (whole+inv.SlicedGPUs-unhealthy)*gpu.WholeMilli-free)
	}
	if inv.SlicedGPUs > 0 { // else slices are parts of the devices
		free += inv.FreeSlicedMilli()
		allocated += inv.SlicedGPUs*gpu.WholeMilli - inv.FreeSlicedMilli()
	}
	c.total += whole + inv.SlicedGPUs
	c.unhealthy += unhealthy
	c.freeMilli += free
	c.allocatedMilli += allocated
	if demand.Known() {
		c.expectedUnusedMilli += demand.Stranding().Expected(inv)
	}
	sums[model] = c
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
	sums, values := c.byModel(), c.views.totals.cacheCounts()
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
