package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/hack/bench/live"
)

const (
	gpuResource = "nvidia.com/gpu"
	namespace   = "bench"
	// openbMilli and openbCount are the annotations by which a pod asks for a share of a GPU.
	openbMilli = "alibabacloud.com/gpu-milli"
	openbCount = "alibabacloud.com/gpu-count"
)

// workload is a stream of pods that is the same for every contender.
type workload struct {
	name, description string
	// pod makes the i-th pod without name and scheduler.
	pod func(i int) *v1.Pod
}

var workloads = []*workload{
	{"identical", "1 GPU each, all alike", identical},
	{"distinct", "1 GPU each, no two alike", distinct},
	{"mix", "50 kinds: CPU only, shares of a GPU, 1 to 8 GPUs", mixed},
}

// Describe is for the flag that chooses among the workloads.
func (w *workload) Describe() (name, description string) { return w.name, w.description }

// minNodes is the smallest cluster on which every workload can be placed.
const minNodes = 50

// mostPods is how many pods of any workload fit on a number of nodes, wherever a scheduler puts each of them.
func mostPods(nodes int) int { return 2 * nodes }

// amounts is what a pod requests.
type amounts struct {
	cpuMilli, memoryMiB, gpus int64
}

func (a amounts) list() v1.ResourceList {
	list := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(a.cpuMilli, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(a.memoryMiB<<20, resource.BinarySI),
	}
	if a.gpus > 0 {
		list[gpuResource] = *resource.NewQuantity(a.gpus, resource.DecimalSI)
	}
	return list
}

func (a amounts) pod(app string) *v1.Pod {
	pod := live.Pod(namespace, "", "", a.list())
	pod.Labels = map[string]string{"app": app}
	return pod
}

func identical(int) *v1.Pod { return amounts{1000, 4096, 1}.pod("train") }

// distinct varies CPU and memory by periods without a common factor: a pair comes again after 32 million pods.
func distinct(i int) *v1.Pod {
	n := int64(i)
	return amounts{1000 + n%4001, 4096 + n%8192, 1}.pod(fmt.Sprintf("train-%d", i))
}

// kind is one of the kinds of pods of a mix.
type kind struct {
	amounts
	name string
	// milliGPU is above 0 for a share of a GPU.
	milliGPU int
}

// mixKinds are 20 kinds of pods without GPUs, 10 of shares, and 20 of whole GPUs. There are never more pods of whole
// GPUs than nodes, and the others request so little CPU and memory that they block few nodes: a pod of 8 GPUs finds an
// empty node even under a scheduler that spreads.
var mixKinds = func() []kind {
	var kinds []kind
	for i := range int64(20) {
		kinds = append(kinds, kind{amounts{1000 + 150*i, 2048 + 300*i, 0}, fmt.Sprintf("web-%d", i), 0})
	}
	for i := range int64(10) {
		kinds = append(kinds, kind{amounts{1000 + 100*i, 2048 + 200*i, 0}, fmt.Sprintf("inference-%d", i), 50 * (int(i) + 1)})
	}
	for _, size := range []struct{ gpus, kinds int64 }{{1, 10}, {2, 5}, {4, 3}, {8, 2}} {
		for i := range size.kinds {
			requests := amounts{(2000 + 300*i) * size.gpus, (8192 + 512*i) * size.gpus, size.gpus}
			kinds = append(kinds, kind{requests, fmt.Sprintf("train%d-%d", size.gpus, i), 0})
		}
	}
	return kinds
}()

// mixed comes in rounds. In each, every kind comes once, in an order that only the number of the round decides.
func mixed(i int) *v1.Pod {
	round, place := i/len(mixKinds), i%len(mixKinds)
	order := rand.New(rand.NewPCG(1, uint64(round))).Perm(len(mixKinds))
	return mixKinds[order[place]].pod()
}

func (k kind) pod() *v1.Pod {
	pod := k.amounts.pod(k.name)
	if k.milliGPU > 0 {
		pod.Annotations = map[string]string{openbMilli: strconv.Itoa(k.milliGPU), openbCount: "1"}
		pod.Spec.NodeSelector = map[string]string{sharedPool: "shared"}
		pod.Spec.Tolerations = []v1.Toleration{
			{Key: sharedPool, Operator: v1.TolerationOpEqual, Value: "shared", Effect: v1.TaintEffectNoSchedule},
		}
	}
	return pod
}

// named gives the i-th pod its name and the scheduler that is to place it. Names sort in the order of the numbers,
// which is the order in which a scheduler that starts later lists the pods.
func (w *workload) named(i int, scheduler string) *v1.Pod {
	pod := w.pod(i)
	pod.Name, pod.Spec.SchedulerName = fmt.Sprintf("pod-%06d", i), scheduler
	return pod
}
