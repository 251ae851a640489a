package gpuaware

import (
	"cmp"
	"encoding/csv"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"berth.dev/berth/pkg/gpu"
)

var (
	openbData = flag.String("openb", cmp.Or(os.Getenv("OPENB_DATA"), "../shared/data/openb"),
		"folder of the openb traces, relative to the module's root")
	openbVariants = flag.String("openb-variants", cmp.Or(os.Getenv("OPENB_VARIANTS"), "default"),
		"comma-separated variants to replay, or all")
	openbProfile = flag.String("openb-profile", cmp.Or(os.Getenv("OPENB_PROFILE"), "gpu-aware-scheduler"),
		"shipped profile to replay through, or alone for GPUAware without stock scores")
	openbSeeds = flag.Int("openb-seeds", 1, "how many seeds to replay of each variant")
)

// published are allocated GPU percentages at 100% arrived load: FGD's from "Beware of Fragmentation: Scheduling
// GPU-Sharing Workloads with Fragmentation Gradient Descent" (USENIX ATC 2023), the others reproduced by its method.
var published = map[string]struct{ random, dotProduct, clustering, packing, bestFit, fgd float64 }{
	"default":    {86.30, 90.62, 91.65, 91.78, 92.86, 95.23},
	"cpu100":     {87.44, 91.73, 92.42, 92.50, 93.26, 95.21},
	"gpushare40": {84.86, 89.30, 89.76, 89.77, 91.44, 93.96},
	"multigpu20": {86.92, 91.85, 93.34, 93.50, 93.73, 95.53},
	"gpuspec10":  {86.26, 90.17, 91.96, 92.24, 93.10, 94.66},
}

// BenchmarkOpenb replays the openb traces through Filter, Score and Reserve of the shipped gpu-aware-scheduler profile,
// by the method of the published figures: pods arrive in random order at an empty cluster, none leaves, none is
// retried, every node is scored; reported is the mean allocated share of GPUs while arrived demand is 100% of them.
func BenchmarkOpenb(b *testing.B) {
	root := moduleRoot(b)
	folder := *openbData
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(root, folder)
	}
	if _, err := os.Stat(folder); err != nil {
		b.Skipf("openb traces are not here (%v); give their folder with -args -openb=…", err)
	}
	nodes := readOpenbNodes(b, filepath.Join(folder, "openb_node_list_gpu_node.csv"))
	variants := strings.Split(*openbVariants, ",")
	if *openbVariants == "all" {
		variants = []string{"default", "cpu100", "gpushare40", "multigpu20", "gpuspec10"}
	}
	for _, variant := range variants {
		pods := readOpenbPods(b, filepath.Join(folder, "openb_pod_list_"+variant+".csv"))
		b.Run(variant, func(b *testing.B) {
			var sum openbResult
			seeds := 0
			for b.Loop() {
				for seed := range *openbSeeds {
					r := replayOpenb(b, root, nodes, pods, uint64(seed))
					b.Logf("seed %d: allocated %.2f%%, %d of %d pods of 8 GPUs refused", seed, r.allocated, r.refusedEight, r.eight)
					sum.allocated += r.allocated
					sum.eight += r.eight
					sum.refusedEight += r.refusedEight
					sum.pods += r.pods
					seeds++
				}
			}
			b.ReportMetric(sum.allocated/float64(seeds), "allocated-%")
			b.ReportMetric(100*float64(sum.refusedEight)/float64(max(1, sum.eight)), "refused-8-GPU-%")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(sum.pods), "µs/pod")
			if p, ok := published[variant]; ok {
				b.Logf("published: FGD %.2f, best-fit %.2f, packing %.2f, clustering %.2f, dot product %.2f, random %.2f",
					p.fgd, p.bestFit, p.packing, p.clustering, p.dotProduct, p.random)
			}
		})
	}
}

// moduleRoot is the folder of go.mod.
func moduleRoot(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			tb.Fatal("no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}

// shippedProfile is a profile of the shipped configuration, without the plugins that see whole gangs: the traces hold
// none.
func shippedProfile(tb testing.TB, root, name string) *schedulerapi.KubeSchedulerProfile {
	tb.Helper()
	content, err := os.ReadFile(filepath.Join(root, "manifests/base/scheduler-config.yaml"))
	if err != nil {
		tb.Fatal(err)
	}
	decoded, _, err := scheme.Codecs.UniversalDecoder().Decode(content, nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	cfg := decoded.(*schedulerapi.KubeSchedulerConfiguration)
	for i := range cfg.Profiles {
		p := &cfg.Profiles[i]
		if p.SchedulerName != name {
			continue
		}
		isGang := func(pl schedulerapi.Plugin) bool { return pl.Name == "Coscheduling" }
		p.Plugins.QueueSort = schedulerapi.PluginSet{Enabled: []schedulerapi.Plugin{{Name: "PrioritySort"}}}
		p.Plugins.PostFilter.Enabled = slices.DeleteFunc(p.Plugins.PostFilter.Enabled, isGang)
		p.Plugins.MultiPoint.Enabled = slices.DeleteFunc(p.Plugins.MultiPoint.Enabled, isGang)
		p.PluginConfig = slices.DeleteFunc(p.PluginConfig,
			func(c schedulerapi.PluginConfig) bool { return c.Name == "Coscheduling" })
		return p
	}
	tb.Fatalf("the shipped configuration has no profile %s", name)
	return nil
}

type openbResult struct {
	allocated           float64
	eight, refusedEight int
	pods                int
}

// openbPod is a pod with the GPU that it asks for.
type openbPod struct {
	pod   *v1.Pod
	milli int
	count int
}

func replayOpenb(b *testing.B, root string, nodes []runtime.Object, workload []openbPod, seed uint64) openbResult {
	profile := alone(defaultArgs())
	if *openbProfile != "alone" {
		profile = shippedProfile(b, root, *openbProfile)
	}
	h := newHarness(b, profile, nodes...)
	capacity := 0
	for _, n := range nodes {
		q := n.(*v1.Node).Status.Allocatable["nvidia.com/gpu"]
		capacity += int(q.Value()) * gpu.WholeMilli
	}
	var r openbResult
	arrived, placed, sum, bins := 0, 0, 0.0, 0
	for i, p := range tuneOpenb(workload, capacity, seed) {
		if 1000*arrived >= 1005*capacity {
			break // later arrivals do not count
		}
		pod := p.pod.DeepCopy()
		pod.Name = fmt.Sprintf("%s-%d", pod.Name, i)
		pod.UID = types.UID(pod.Name)
		_, _, err := h.reserve(b, pod)
		arrived += p.milli
		switch {
		case err == nil:
			placed += p.milli
		case p.count == 8 && arrived <= capacity:
			r.refusedEight++
		}
		if p.count == 8 && arrived <= capacity {
			r.eight++
		}
		if percent := 100 * float64(arrived) / float64(capacity); percent >= 99.5 && percent < 100.5 {
			sum += 100 * float64(placed) / float64(capacity)
			bins++
		}
		r.pods++
	}
	r.allocated = sum / float64(bins)
	return r
}

// tuneOpenb shuffles the workload and makes its demand 1.3 times the cluster's GPUs: by clones drawn at random where
// it is less, by deleting pods at random where it is more.
func tuneOpenb(workload []openbPod, capacity int, seed uint64) []openbPod {
	random := rand.New(rand.NewPCG(seed, 0))
	pods := slices.Clone(workload)
	random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	demand := 0
	for _, p := range pods {
		demand += p.milli
	}
	target := capacity * 13 / 10
	for demand < target {
		p := workload[random.IntN(len(workload))]
		pods = append(pods, p)
		demand += p.milli
	}
	for demand > target {
		i := random.IntN(len(pods))
		demand -= pods[i].milli
		pods = slices.Delete(pods, i, i+1)
	}
	return pods
}

func readCSV(tb testing.TB, path string) []map[string]string {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		tb.Fatal(err)
	}
	rows := make([]map[string]string, 0, len(records)-1)
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, field := range record {
			row[records[0][i]] = field
		}
		rows = append(rows, row)
	}
	return rows
}

func readOpenbNodes(tb testing.TB, path string) []runtime.Object {
	var nodes []runtime.Object
	for _, row := range readCSV(tb, path) {
		n, err := strconv.Atoi(row["gpu"])
		if err != nil {
			tb.Fatal(err)
		}
		node := gpuNodeObject(row["sn"], n, row["model"], "berth.dev/gpu-mode", "shared", v1.LabelHostname, row["sn"])
		node.Status.Allocatable[v1.ResourceCPU] = resource.MustParse(row["cpu_milli"] + "m")
		node.Status.Allocatable[v1.ResourceMemory] = resource.MustParse(row["memory_mib"] + "Mi")
		node.Status.Allocatable[v1.ResourcePods] = resource.MustParse("10000")
		nodes = append(nodes, node)
	}
	return nodes
}

func readOpenbPods(tb testing.TB, path string) []openbPod {
	var pods []openbPod
	for _, row := range readCSV(tb, path) {
		p := openbPod{pod: podObject(row["name"], map[string]string{"cpu": row["cpu_milli"] + "m",
			"memory": row["memory_mib"] + "Mi"}, nil)}
		var milli int
		for column, into := range map[string]*int{"num_gpu": &p.count, "gpu_milli": &milli} {
			var err error
			if *into, err = strconv.Atoi(row[column]); err != nil {
				tb.Fatal(err)
			}
		}
		if p.milli = p.count * milli; p.count > 0 {
			p.pod.Annotations = map[string]string{
				"alibabacloud.com/gpu-count": row["num_gpu"], "alibabacloud.com/gpu-milli": row["gpu_milli"],
				"alibabacloud.com/gpu-card-model": row["gpu_spec"],
			}
		}
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b openbPod) int { return strings.Compare(a.pod.Name, b.pod.Name) })
	return pods
}
