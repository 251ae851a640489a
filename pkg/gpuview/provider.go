package gpuview

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu"
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

// alias is a product behind a name that a provider gives it, and its memory where the name stands for several.
type alias struct {
	product string
	memGiB  int
}

// aliases are the names, in lower case, by which providers label GPUs. Sources: Google Cloud, "GPU platforms" (the
// names that begin with nvidia-); EC2's DescribeInstanceTypes, whose names Karpenter and EKS Auto Mode repeat; Azure's
// resource SKUs, whose names Karpenter repeats; OpenShift, "Labeling GPU machine sets for the cluster autoscaler".
var aliases = map[string][]alias{
	"nvidia-tesla-p4": {{product: productP4}}, "nvidia-tesla-p100": {{product: productP100}},
	"nvidia-tesla-t4": {{product: productT4}}, "nvidia-tesla-v100": {{product: productV100}},
	"nvidia-l4": {{product: productL4}}, "nvidia-tesla-a100": {{product: productA100}},
	"nvidia-a100-80gb": {{product: productA100M80}}, "nvidia-h100-80gb": {{product: productH100}},
	"nvidia-h100-mega-80gb": {{product: productH100}}, "nvidia-h200-141gb": {{product: productH200}},
	"nvidia-b200": {{product: productB200}}, "nvidia-b300": {{product: productB300}}, "nvidia-gb200": {{product: productGB200}},
	"nvidia-rtx-pro-6000": {{product: productRTXPro}},

	"t4": {{product: productT4}}, "t4g": {{product: productT4G}}, "a10g": {{product: productA10G}},
	"a10": {{product: productA10}}, "l4": {{product: productL4}}, "l40s": {{product: productL40S}},
	"v100": {{productV100, 16}, {productV100M32, 32}}, "a100": {{productA100, 40}, {productA100M80, 80}},
	"h100": {{productH100, 80}, {productH100NVL, 94}}, "h200": {{product: productH200}}, "b200": {{product: productB200}},
	"b300": {{product: productB300}}, "gb200": {{product: productGB200}}, "mi300x": {{product: productMI300X}},
	"radeon-pro-v520": {{product: productRadeonPro}},

	"nvidia-t4": {{product: productT4}}, "nvidia-a10g": {{product: productA10G}}, "nvidia-l40s": {{product: productL40S}},
}

// providerProduct is the product behind the name by which a provider labels GPUs, the one of that memory where there
// are several; without known memory a name of several stands for none.
func providerProduct(name string, memMiB int) (string, bool) {
	known := aliases[strings.ToLower(name)]
	if len(known) == 1 {
		return known[0].product, true
	}
	for _, a := range known {
		// Providers round the memory or leave out what error correction takes.
		if nominal := a.memGiB << 10; memMiB > nominal*85/100 && memMiB < nominal*108/100 {
			return a.product, true
		}
	}
	return "", false
}

// CanonicalModel is how GPU feature discovery spells a model that a pod names as Google Cloud labels it; other names
// stay as they are. Short names such as a100 are not product names: they stand for several.
func CanonicalModel(name string) string {
	if strings.HasPrefix(strings.ToLower(name), "nvidia-") {
		if product, ok := providerProduct(name, 0); ok {
			return product
		}
	}
	return name
}

// instanceTypeLabels hold the provider's name of the kind of machine.
var instanceTypeLabels = []string{v1.LabelInstanceTypeStable, v1.LabelInstanceType}

// ProviderLabels are the keys of all labels that provided reads, for those that copy nodes.
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

// provided is what a platform says of a node's GPUs; zero values where it says nothing.
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

// provided reads what the node's agent listed, then the labels of the platform, then what is documented of the instance
// type.
func (b *nodeReader) provided(listed []PublishedGPU) provided {
	p := provided{count: publishedCount(listed), replicas: publishedReplicas(listed)}
	if len(listed) > 0 {
		p.model, p.memMiB = gpu.BaseModel(listed[0].Model), listed[0].MemMiB
	}
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
		known, ok := lookupMachine(b.node.Labels[key])
		if !ok {
			continue
		}
		if p.model == "" {
			p.model = known.product
		}
		if p.count == 0 {
			p.count = known.count
		}
		if p.memMiB == 0 {
			p.memMiB = known.memMiB
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
	if model, ok := providerProduct(name, p.memMiB); ok {
		p.model = model
	} else if _, ok := gpu.LookupProduct(name); ok && strings.Contains(name, "-") {
		p.model = name // the maker's own name
	}
}

// readGKE reads how GKE shares or cuts the GPUs of a node.
func (b *nodeReader) readGKE(p *provided) {
	p.partition = b.node.Labels[gkePartitionLabel]
	value, ok := b.node.Labels[gkeClientsLabel]
	if !ok {
		return
	}
	clients, err := strconv.Atoi(value)
	if err != nil || clients < 1 || clients > maxReplicas {
		b.reject("label", gkeClientsLabel, value, fmt.Sprintf("a whole number from 1 to %d", maxReplicas))
		return
	}
	if p.replicas = max(p.replicas, clients); p.count == 0 && p.partition == "" {
		p.count = int(min((b.offer.units+int64(clients)-1)/int64(clients), MaxGPUs))
	}
}
