package gpuview

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu/catalog"
)

// Labels by which platforms describe the GPUs of their nodes.
const (
	gkeAcceleratorLabel = "cloud.google.com/gke-accelerator"
	gkeCountLabel       = "cloud.google.com/gke-accelerator-count"
	gkeStrategyLabel    = "cloud.google.com/gke-gpu-sharing-strategy"
	gkeClientsLabel     = "cloud.google.com/gke-max-shared-clients-per-gpu"
	gkePartitionLabel   = "cloud.google.com/gke-gpu-partition-size"

	openShiftAcceleratorLabel = "cluster-api/accelerator"

	intelMemoryLabel     = "gpu.intel.com/memory.max"
	intelMillicoresLabel = "gpu.intel.com/millicores"
)

// gpuLabeller is a platform that labels a node with its GPUs; keys that it does not know are empty.
type gpuLabeller struct{ name, memory, count string }

// gpuLabellers are GKE, Karpenter on AWS, EKS Auto Mode, Karpenter on Azure and Alibaba Cloud's ACK. OpenShift's label
// is set by administrators: often it says no more than that there are GPUs.
var gpuLabellers = []gpuLabeller{
	{name: gkeAcceleratorLabel, count: gkeCountLabel},
	instanceLabeller("karpenter.k8s.aws/instance-gpu-"),
	instanceLabeller("eks.amazonaws.com/instance-gpu-"),
	{name: "karpenter.azure.com/sku-gpu-name", count: "karpenter.azure.com/sku-gpu-count"},
	{"aliyun.accelerator/nvidia_name", "aliyun.accelerator/nvidia_mem", "aliyun.accelerator/nvidia_count"},
	{name: openShiftAcceleratorLabel},
}

// instanceLabeller is a platform that repeats what EC2 tells of an instance type under keys that begin alike.
func instanceLabeller(prefix string) gpuLabeller {
	return gpuLabeller{name: prefix + "name", memory: prefix + "memory", count: prefix + "count"}
}

// canonicalModel is the name that GPU feature discovery uses for a model with a name of Google Cloud; other names stay
// as they are. Short names such as a100 stand for several products and are not converted.
func canonicalModel(name string) string {
	if strings.HasPrefix(strings.ToLower(name), "nvidia-") {
		if product, ok := catalog.ProviderProduct(name, 0); ok {
			return product
		}
	}
	return name
}

// instanceTypeLabels hold the provider's instance type.
var instanceTypeLabels = []string{v1.LabelInstanceTypeStable, v1.LabelInstanceType}

// ProviderLabels are the keys of all labels that provided reads.
func ProviderLabels() []string {
	keys := []string{gkeStrategyLabel, gkeClientsLabel, gkePartitionLabel, intelMillicoresLabel}
	for _, l := range gpuLabellers {
		for _, key := range []string{l.name, l.memory, l.count} {
			if key != "" {
				keys = append(keys, key)
			}
		}
	}
	return append(keys, instanceTypeLabels...)
}

// provided is what a platform says about a node's GPUs; zero where it says nothing.
type provided struct {
	// model as GPU feature discovery would call it.
	model  string
	memMiB int
	// count is how many physical GPUs the machine has.
	count int
	// replicas is by how many containers a GPU may be shared.
	replicas int
	// partition is the profile into which all GPUs are cut.
	partition string
}

// provided reads the labels of the platform, then what is documented of the instance type.
func (b *nodeReader) provided() provided {
	p := provided{replicas: 1}
	for _, l := range gpuLabellers {
		if name := b.node.Labels[l.name]; name != "" {
			b.readLabeller(&l, name, &p)
			break
		}
	}
	if b.node.Labels[gkeAcceleratorLabel] != "" {
		b.readGKE(&p)
	}
	for _, key := range instanceTypeLabels {
		known, ok := catalog.LookupMachine(b.node.Labels[key])
		if !ok {
			continue
		}
		if p.model == "" {
			p.model = known.Product
		}
		if p.count == 0 {
			p.count = known.Count
		}
		if p.memMiB == 0 {
			p.memMiB = known.MemMiB
		}
		break
	}
	if p.count == 0 && maker(b.offer.resource) == maker(intelMillicoresLabel) {
		p.count = b.intelCount()
	}
	return p
}

// readLabeller reads the labels of one platform.
func (b *nodeReader) readLabeller(l *gpuLabeller, name string, p *provided) {
	if value, ok := b.node.Labels[l.memory]; ok && l.memory != "" {
		mib, ok := parseMemoryMiB(value, false)
		if !ok {
			b.reject("label", l.memory, value, "the memory of one GPU in MiB")
		}
		if p.memMiB == 0 {
			p.memMiB = mib
		}
	}
	if l.count != "" && p.count == 0 {
		p.count = b.number([]string{l.count}, MaxGPUs)
	}
	if p.model != "" {
		return
	}
	if model, ok := catalog.ProviderProduct(name, p.memMiB); ok {
		p.model = model
	} else if _, ok := catalog.Lookup(name); ok && strings.Contains(name, "-") {
		p.model = name // the maker's own name
	}
}

// readGKE reads how GKE shares or cuts the GPUs of a node.
func (b *nodeReader) readGKE(p *provided) {
	p.partition = b.node.Labels[gkePartitionLabel]
	clients := b.number([]string{gkeClientsLabel}, maxUnits)
	if p.replicas = max(p.replicas, clients); clients > 0 && p.count == 0 && p.partition == "" {
		p.count = min(ceil(b.offer.units, clients), MaxGPUs)
	}
}
