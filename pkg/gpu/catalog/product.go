package catalog

import "strings"

// Maker is who makes a GPU.
type Maker uint8

const (
	// NVIDIA makes all GPUs that are not known to be made by others.
	NVIDIA Maker = iota
	// AMD is Advanced Micro Devices.
	AMD
	// Intel is Intel.
	Intel
)

// Product is what the maker's data sheet says of a GPU.
type Product struct {
	Maker Maker
	// Generation is the CUDA compute capability times ten; 0 for other makers.
	Generation int
	// MemMiB is the nominal memory.
	MemMiB int
	// NVLinkMesh reports that the form factor connects all GPUs of a node by NVLink at full bandwidth.
	NVLinkMesh bool
}

// products maps a part of a product name, in upper case, to its data. The first match wins, so longer parts stand
// first. Compute capabilities are those of NVIDIA's CUDA GPU list, memory and form factor those of the data sheets.
// The V100's hybrid cube mesh is no full mesh, so that SXM2 is left to the links matrix.
var products = []struct {
	part string
	Product
}{
	{"GB300", Product{NVIDIA, 103, 288 << 10, true}},
	{"GB200", Product{NVIDIA, 100, 186 << 10, true}},
	{"B300", Product{NVIDIA, 103, 288 << 10, true}},
	{"B200", Product{NVIDIA, 100, 180 << 10, true}},
	{"GH200", Product{NVIDIA, 90, 96 << 10, false}},
	{"H200-NVL", Product{NVIDIA, 90, 141 << 10, false}},
	{"H200", Product{NVIDIA, 90, 141 << 10, true}},
	{"H100-NVL", Product{NVIDIA, 90, 94 << 10, false}},
	{"H100-PCIE", Product{NVIDIA, 90, 80 << 10, false}},
	{"H100", Product{NVIDIA, 90, 80 << 10, true}},
	{"H800-PCIE", Product{NVIDIA, 90, 80 << 10, false}},
	{"H800", Product{NVIDIA, 90, 80 << 10, true}},
	{"H20", Product{NVIDIA, 90, 96 << 10, true}},
	{"A100-SXM4-80GB", Product{NVIDIA, 80, 80 << 10, true}},
	{"A100-SXM4-40GB", Product{NVIDIA, 80, 40 << 10, true}},
	{"A100-SXM-80GB", Product{NVIDIA, 80, 80 << 10, true}},
	{"A100-SXM-64GB", Product{NVIDIA, 80, 64 << 10, true}},
	{"A100-SXM", Product{NVIDIA, 80, 40 << 10, true}},
	{"A100-PCIE-40GB", Product{NVIDIA, 80, 40 << 10, false}},
	{"A100-80GB-PCIE", Product{NVIDIA, 80, 80 << 10, false}},
	{"A100", Product{NVIDIA, 80, 40 << 10, false}},
	{"A800-SXM4", Product{NVIDIA, 80, 80 << 10, true}},
	{"A800-40GB", Product{NVIDIA, 80, 40 << 10, false}},
	{"A800", Product{NVIDIA, 80, 80 << 10, false}},
	{"RTX-PRO-6000", Product{NVIDIA, 120, 96 << 10, false}},
	{"A30", Product{NVIDIA, 80, 24 << 10, false}},
	{"A10G", Product{NVIDIA, 86, 24 << 10, false}},
	{"A40", Product{NVIDIA, 86, 48 << 10, false}},
	{"A16", Product{NVIDIA, 86, 16 << 10, false}},
	{"A10", Product{NVIDIA, 86, 24 << 10, false}},
	{"A2", Product{NVIDIA, 86, 16 << 10, false}},
	{"L40S", Product{NVIDIA, 89, 48 << 10, false}},
	{"L40", Product{NVIDIA, 89, 48 << 10, false}},
	{"L20", Product{NVIDIA, 89, 48 << 10, false}},
	{"L4", Product{NVIDIA, 89, 24 << 10, false}},
	{"T4G", Product{NVIDIA, 75, 16 << 10, false}},
	{"T4", Product{NVIDIA, 75, 16 << 10, false}},
	{"V100-SXM2-32GB", Product{NVIDIA, 70, 32 << 10, false}},
	{"V100-SXM3-32GB", Product{NVIDIA, 70, 32 << 10, true}},
	{"V100-PCIE-32GB", Product{NVIDIA, 70, 32 << 10, false}},
	{"V100", Product{NVIDIA, 70, 16 << 10, false}},
	{"P100", Product{NVIDIA, 60, 16 << 10, false}},
	{"P40", Product{NVIDIA, 61, 24 << 10, false}},
	{"P4", Product{NVIDIA, 61, 8 << 10, false}},
	{"K80", Product{NVIDIA, 37, 12 << 10, false}},
	{"MI355X", Product{AMD, 0, 288 << 10, true}},
	{"MI325X", Product{AMD, 0, 256 << 10, true}},
	{"MI300X", Product{AMD, 0, 192 << 10, true}},
	{"MI250X", Product{AMD, 0, 128 << 10, false}},
	{"PRO_V520", Product{AMD, 0, 8 << 10, false}},
	{"MAX_1550", Product{Intel, 0, 128 << 10, false}},
	{"MAX_1100", Product{Intel, 0, 48 << 10, false}},
}

// Lookup finds a product by its name as device plugins report it (NVIDIA-A100-SXM4-80GB, Tesla-T4). A name
// that only resembles a product (T400, A2000) is not found.
func Lookup(name string) (Product, bool) {
	upper := strings.ToUpper(name)
	for _, p := range products {
		if ContainsWord(upper, p.part) {
			return p.Product, true
		}
	}
	return Product{}, false
}

// ContainsWord reports whether part occurs in s bounded by separators or the ends.
func ContainsWord(s, part string) bool {
	for from := 0; ; {
		i := strings.Index(s[from:], part)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(part)
		if (start == 0 || separator(s[start-1])) && (end == len(s) || separator(s[end]) ||
			(strings.Contains(part, "-") && !alphanumeric(s[end]))) {
			return true
		}
		from = start + 1
	}
}

func separator(c byte) bool { return c == '-' || c == '_' || c == ' ' }

func alphanumeric(c byte) bool { return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' }

// BaseModel strips from a product name what GPU feature discovery appends to it where GPUs are shared or cut.
func BaseModel(product string) string {
	base, _, _ := strings.Cut(strings.TrimSuffix(product, "-SHARED"), migSuffix)
	return base
}

// migSuffix begins what GPU feature discovery appends to the product of a GPU whose slices are handed out as GPUs.
const migSuffix = "-MIG-"

// SliceProfile is the profile in the product name of a node whose slices are handed out as GPUs; empty for others.
func SliceProfile(product string) string {
	_, profile, _ := strings.Cut(strings.TrimSuffix(product, "-SHARED"), migSuffix)
	return profile
}

// generations are the compute capabilities behind the names that labels use: NVIDIA's families, and the models of the
// published examples.
var generations = map[string]int{
	"kepler": 35, "maxwell": 50, "pascal": 60, "volta": 70, "turing": 75, "ampere": 80, "ada-lovelace": 89,
	"hopper": 90, "blackwell": 100,
	"p100": 60, "v100": 70, "t4": 75, "a100": 80, "a10": 86, "l4": 89, "l40s": 89, "h100": 90, "h200": 90, "b200": 100,
}

// GenerationOf is the compute capability, times ten, behind the name of a family or of a well-known model; false for
// others.
func GenerationOf(name string) (int, bool) {
	g, ok := generations[strings.ToLower(name)]
	return g, ok
}
