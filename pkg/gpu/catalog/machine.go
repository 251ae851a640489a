package catalog

import "strings"

// Machine is what a provider documents of the GPUs of an instance type.
type Machine struct {
	// Product is the name by which GPU feature discovery knows the GPUs.
	Product string
	// Count is how many physical GPUs there are.
	Count int
	// MemMiB is the memory of each where the machine gets a part of a GPU only; 0 for that of the product.
	MemMiB int
}

// Names of products as GPU feature discovery writes them.
const (
	productT4        = "Tesla-T4"
	productT4G       = "NVIDIA-T4G"
	productP4        = "Tesla-P4"
	productP100      = "Tesla-P100-PCIE-16GB"
	productV100      = "Tesla-V100-SXM2-16GB"
	productV100M32   = "Tesla-V100-SXM2-32GB"
	productV100PCIe  = "Tesla-V100-PCIE-16GB"
	productA10       = "NVIDIA-A10"
	productA10G      = "NVIDIA-A10G"
	productA100      = "NVIDIA-A100-SXM4-40GB"
	productA100M80   = "NVIDIA-A100-SXM4-80GB"
	productA100PCIe  = "NVIDIA-A100-80GB-PCIe"
	productL4        = "NVIDIA-L4"
	productL40S      = "NVIDIA-L40S"
	productH100      = "NVIDIA-H100-80GB-HBM3"
	productH100NVL   = "NVIDIA-H100-NVL"
	productH200      = "NVIDIA-H200"
	productB200      = "NVIDIA-B200"
	productB300      = "NVIDIA-B300-SXM6-AC"
	productGB200     = "NVIDIA-GB200"
	productRTXPro    = "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"
	productMI300X    = "AMD_Instinct_MI300X_OAM"
	productRadeonPro = "AMD_Radeon_Pro_V520"
)

// machines are the instance types with GPUs, in lower case. Sources: AWS, "Specifications for Amazon EC2 accelerated
// computing instances"; Google Cloud, "GPU machine types"; Azure, "GPU-accelerated virtual machine sizes" (the pages of
// the NC, ND and NV families); Oracle, "Compute shapes". The N1 machines of Google Cloud take any number of GPUs, so
// that they are not here: their nodes say the number in a label.
var machines = map[string]Machine{
	// AWS.
	"g4dn.xlarge": {productT4, 1, 0}, "g4dn.2xlarge": {productT4, 1, 0}, "g4dn.4xlarge": {productT4, 1, 0},
	"g4dn.8xlarge": {productT4, 1, 0}, "g4dn.12xlarge": {productT4, 4, 0}, "g4dn.16xlarge": {productT4, 1, 0},
	"g4dn.metal":  {productT4, 8, 0},
	"g4ad.xlarge": {productRadeonPro, 1, 0}, "g4ad.2xlarge": {productRadeonPro, 1, 0},
	"g4ad.4xlarge": {productRadeonPro, 1, 0}, "g4ad.8xlarge": {productRadeonPro, 2, 0},
	"g4ad.16xlarge": {productRadeonPro, 4, 0},
	"g5.xlarge":     {productA10G, 1, 0}, "g5.2xlarge": {productA10G, 1, 0}, "g5.4xlarge": {productA10G, 1, 0},
	"g5.8xlarge": {productA10G, 1, 0}, "g5.12xlarge": {productA10G, 4, 0}, "g5.16xlarge": {productA10G, 1, 0},
	"g5.24xlarge": {productA10G, 4, 0}, "g5.48xlarge": {productA10G, 8, 0},
	"g5g.xlarge": {productT4G, 1, 0}, "g5g.2xlarge": {productT4G, 1, 0}, "g5g.4xlarge": {productT4G, 1, 0},
	"g5g.8xlarge": {productT4G, 1, 0}, "g5g.16xlarge": {productT4G, 2, 0}, "g5g.metal": {productT4G, 2, 0},
	"g6.xlarge": {productL4, 1, 0}, "g6.2xlarge": {productL4, 1, 0}, "g6.4xlarge": {productL4, 1, 0},
	"g6.8xlarge": {productL4, 1, 0}, "g6.12xlarge": {productL4, 4, 0}, "g6.16xlarge": {productL4, 1, 0},
	"g6.24xlarge": {productL4, 4, 0}, "g6.48xlarge": {productL4, 8, 0},
	"gr6.4xlarge": {productL4, 1, 0}, "gr6.8xlarge": {productL4, 1, 0},
	"g6e.xlarge": {productL40S, 1, 0}, "g6e.2xlarge": {productL40S, 1, 0}, "g6e.4xlarge": {productL40S, 1, 0},
	"g6e.8xlarge": {productL40S, 1, 0}, "g6e.12xlarge": {productL40S, 4, 0}, "g6e.16xlarge": {productL40S, 1, 0},
	"g6e.24xlarge": {productL40S, 4, 0}, "g6e.48xlarge": {productL40S, 8, 0},
	"p3.2xlarge": {productV100, 1, 0}, "p3.8xlarge": {productV100, 4, 0}, "p3.16xlarge": {productV100, 8, 0},
	"p3dn.24xlarge": {productV100M32, 8, 0},
	"p4d.24xlarge":  {productA100, 8, 0}, "p4de.24xlarge": {productA100M80, 8, 0},
	"p5.4xlarge": {productH100, 1, 0}, "p5.48xlarge": {productH100, 8, 0},
	"p5e.48xlarge": {productH200, 8, 0}, "p5en.48xlarge": {productH200, 8, 0},
	"p6-b200.48xlarge": {productB200, 8, 0}, "p6-b300.48xlarge": {productB300, 8, 0},
	"p6e-gb200.36xlarge": {productGB200, 4, 0},

	// Google Cloud.
	"a2-highgpu-1g": {productA100, 1, 0}, "a2-highgpu-2g": {productA100, 2, 0}, "a2-highgpu-4g": {productA100, 4, 0},
	"a2-highgpu-8g": {productA100, 8, 0}, "a2-megagpu-16g": {productA100, 16, 0},
	"a2-ultragpu-1g": {productA100M80, 1, 0}, "a2-ultragpu-2g": {productA100M80, 2, 0},
	"a2-ultragpu-4g": {productA100M80, 4, 0}, "a2-ultragpu-8g": {productA100M80, 8, 0},
	"a3-highgpu-1g": {productH100, 1, 0}, "a3-highgpu-2g": {productH100, 2, 0}, "a3-highgpu-4g": {productH100, 4, 0},
	"a3-highgpu-8g": {productH100, 8, 0}, "a3-edgegpu-8g": {productH100, 8, 0}, "a3-megagpu-8g": {productH100, 8, 0},
	"a3-ultragpu-8g": {productH200, 8, 0}, "a4-highgpu-8g": {productB200, 8, 0}, "a4x-highgpu-4g": {productGB200, 4, 0},
	"g2-standard-4": {productL4, 1, 0}, "g2-standard-8": {productL4, 1, 0}, "g2-standard-12": {productL4, 1, 0},
	"g2-standard-16": {productL4, 1, 0}, "g2-standard-24": {productL4, 2, 0}, "g2-standard-32": {productL4, 1, 0},
	"g2-standard-48": {productL4, 4, 0}, "g2-standard-96": {productL4, 8, 0},
	"g4-standard-48": {productRTXPro, 1, 0}, "g4-standard-96": {productRTXPro, 2, 0},
	"g4-standard-192": {productRTXPro, 4, 0}, "g4-standard-384": {productRTXPro, 8, 0},

	// Azure.
	"standard_nc4as_t4_v3": {productT4, 1, 0}, "standard_nc8as_t4_v3": {productT4, 1, 0},
	"standard_nc16as_t4_v3": {productT4, 1, 0}, "standard_nc64as_t4_v3": {productT4, 4, 0},
	"standard_nc6s_v3": {productV100PCIe, 1, 0}, "standard_nc12s_v3": {productV100PCIe, 2, 0},
	"standard_nc24s_v3": {productV100PCIe, 4, 0}, "standard_nc24rs_v3": {productV100PCIe, 4, 0},
	"standard_nc24ads_a100_v4": {productA100PCIe, 1, 0}, "standard_nc48ads_a100_v4": {productA100PCIe, 2, 0},
	"standard_nc96ads_a100_v4": {productA100PCIe, 4, 0},
	"standard_nc40ads_h100_v5": {productH100NVL, 1, 0}, "standard_nc80adis_h100_v5": {productH100NVL, 2, 0},
	"standard_nd40rs_v2": {productV100M32, 8, 0}, "standard_nd96asr_v4": {productA100, 8, 0},
	"standard_nd96amsr_a100_v4": {productA100M80, 8, 0}, "standard_nd96isr_h100_v5": {productH100, 8, 0},
	"standard_nd96isr_h200_v5": {productH200, 8, 0}, "standard_nd96isr_mi300x_v5": {productMI300X, 8, 0},
	"standard_nd128isr_ndr_gb200_v6": {productGB200, 4, 0},
	"standard_nv6ads_a10_v5":         {productA10, 1, 4 << 10}, "standard_nv12ads_a10_v5": {productA10, 1, 8 << 10},
	"standard_nv18ads_a10_v5": {productA10, 1, 12 << 10}, "standard_nv36ads_a10_v5": {productA10, 1, 0},
	"standard_nv36adms_a10_v5": {productA10, 1, 0}, "standard_nv72ads_a10_v5": {productA10, 2, 0},

	// Oracle.
	"vm.gpu3.1": {productV100, 1, 0}, "vm.gpu3.2": {productV100, 2, 0}, "vm.gpu3.4": {productV100, 4, 0},
	"bm.gpu3.8": {productV100, 8, 0}, "bm.gpu4.8": {productA100, 8, 0}, "bm.gpu.a100-v2.8": {productA100M80, 8, 0},
	"vm.gpu.a10.1": {productA10, 1, 0}, "vm.gpu.a10.2": {productA10, 2, 0}, "bm.gpu.a10.4": {productA10, 4, 0},
	"bm.gpu.l40s.4": {productL40S, 4, 0}, "bm.gpu.h100.8": {productH100, 8, 0}, "bm.gpu.h200.8": {productH200, 8, 0},
	"bm.gpu.b200.8": {productB200, 8, 0}, "bm.gpu.mi300x.8": {productMI300X, 8, 0},
}

// LookupMachine finds an instance type by its name. Letter case does not matter.
func LookupMachine(instanceType string) (Machine, bool) {
	m, ok := machines[strings.ToLower(instanceType)]
	return m, ok
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
	"nvidia-b200": {{product: productB200}}, "nvidia-b300": {{product: productB300}},
	"nvidia-gb200":        {{product: productGB200}},
	"nvidia-rtx-pro-6000": {{product: productRTXPro}},

	"t4": {{product: productT4}}, "t4g": {{product: productT4G}}, "a10g": {{product: productA10G}},
	"a10": {{product: productA10}}, "l4": {{product: productL4}}, "l40s": {{product: productL40S}},
	"v100": {{productV100, 16}, {productV100M32, 32}}, "a100": {{productA100, 40}, {productA100M80, 80}},
	"h100": {{productH100, 80}, {productH100NVL, 94}}, "h200": {{product: productH200}}, "b200": {{product: productB200}},
	"b300": {{product: productB300}}, "gb200": {{product: productGB200}}, "mi300x": {{product: productMI300X}},
	"radeon-pro-v520": {{product: productRadeonPro}},

	"nvidia-t4": {{product: productT4}}, "nvidia-a10g": {{product: productA10G}}, "nvidia-l40s": {{product: productL40S}},
}

// ProviderProduct is the product behind the name by which a provider labels GPUs, the one of that memory where there
// are several; without known memory a name of several stands for none.
func ProviderProduct(name string, memMiB int) (string, bool) {
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
