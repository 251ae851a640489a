package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/replay"
	"berth.dev/berth/pkg/trace"
)

// workload draws pods and says which of them talk to each other, and which gangs do so in a ring.
type workload struct {
	name, description string
	make              func(*rand.Rand, []runtime.Object) (replay.Input, []pair, []ring)
}

// Describe is for the flag that chooses among the workloads.
func (w workload) Describe() (name, description string) { return w.name, w.description }

var workloads = []workload{
	{"gangs", "a day of churn with gangs", gangs(false)},
	{"ranks", "the same, with gangs whose pods are numbered", gangs(true)},
	{"services", "caches and their readers", services},
	{"conflict", "readers whose distance is against packing", conflict},
}

// gangs is a day of churn: four of five GPUs are asked for by gangs of 2 to 32 pods of 2, 4 or 8 GPUs, the others by
// single pods. The pods of a ranked gang are numbered as those of an indexed Job.
func gangs(ranked bool) func(*rand.Rand, []runtime.Object) (replay.Input, []pair, []ring) {
	return func(random *rand.Rand, objects []runtime.Object) (replay.Input, []pair, []ring) {
		return drawGangs(random, objects, ranked)
	}
}

func drawGangs(random *rand.Rand, objects []runtime.Object, ranked bool) (replay.Input, []pair, []ring) {
	in := replay.Input{Name: "gangs", Objects: objects}
	var rings []ring
	var pairs []pair
	const day = 24 * time.Hour
	const mean = 2 * time.Hour
	// GPU hours to offer, so that the load holds in the mean.
	left := float64(*load) / 100 * 8 * float64(len(objects)) * day.Hours()
	for i := 0; left > 0; i++ {
		j := trace.Job{Name: fmt.Sprintf("j%05d", i), Pods: 1, GPUs: 1 << random.IntN(4), GPUMilli: 1000,
			Arrival:  time.Duration(random.Float64() * float64(day)),
			Duration: time.Duration((0.1 + random.ExpFloat64()) * float64(mean)).Truncate(time.Second)}
		if random.IntN(5) == 0 {
			j.Gang, j.Ranked, j.Pods, j.GPUs = true, ranked, 1<<(1+random.IntN(5)), 2<<random.IntN(3)
			var pods ring
			for a := range j.Pods {
				pods = append(pods, fmt.Sprintf("replay/%s-%d", j.Name, a))
				for b := range a {
					pairs = append(pairs, pair{fmt.Sprintf("replay/%s-%d", j.Name, a), fmt.Sprintf("replay/%s-%d", j.Name, b)})
				}
			}
			rings = append(rings, pods)
		}
		j.CPUMilli, j.MemoryMiB = 8000*int64(j.GPUs), 64<<10*int64(j.GPUs)
		left -= float64(j.GPUs*j.Pods) * j.Duration.Hours()
		in.Jobs = append(in.Jobs, j)
	}
	slices.SortFunc(in.Jobs, func(a, b trace.Job) int { return int(a.Arrival - b.Arrival) })
	return in, pairs, rings
}

// services are caches, one for eight pods of a GPU that read from it. All arrive in any order, and ask for half of the
// cluster.
func services(random *rand.Rand, objects []runtime.Object) (replay.Input, []pair, []ring) {
	pods, pairs := readers(random, len(objects)/2)
	return replay.Input{Name: "services", Objects: append(objects, pods...)}, pairs, nil
}

// conflict sets distance against packing. One half of the nodes is empty; the others have one to seven GPUs in use, and
// as many free in the mean as the readers of a service for every fourth node ask for: packed, these leave the empty
// nodes alone. Later come pods that need a whole node each, one for each empty node, and stay.
func conflict(random *rand.Rand, objects []runtime.Object) (replay.Input, []pair, []ring) {
	n := len(objects)
	in := replay.Input{Name: "conflict", Objects: objects}
	for i, at := range random.Perm(n) {
		if i >= n/2 {
			break
		}
		pod := servicePod(fmt.Sprintf("used-%d", i), int64(1+i%7), nil, "")
		pod.Spec.NodeName, pod.Status.Phase = objects[at].(*v1.Node).Name, v1.PodRunning
		in.Objects = append(in.Objects, pod)
	}
	pods, pairs := readers(random, n/4)
	in.Objects = append(in.Objects, pods...)
	for i := range n / 2 {
		in.Jobs = append(in.Jobs, trace.Job{Name: fmt.Sprintf("whole-%04d", i), Pods: 1, GPUs: 8, GPUMilli: 1000,
			CPUMilli: 32_000, MemoryMiB: 256 << 10,
			Arrival: time.Minute + time.Duration(i)*time.Second})
	}
	return in, pairs, nil
}

// readers are caches, and eight pods of a GPU for each that read from it, in any order.
func readers(random *rand.Rand, apps int) (objects []runtime.Object, pairs []pair) {
	var pods []*v1.Pod
	for app := range apps {
		cache := fmt.Sprintf("cache-%d", app)
		pods = append(pods, servicePod(cache, 0, map[string]string{"app": cache}, ""))
		for i := range 8 {
			name := fmt.Sprintf("reader-%d-%d", app, i)
			pods = append(pods, servicePod(name, 1, map[string]string{"app": "reader"}, fmt.Sprintf("app=%s 100GiB/h", cache)))
			pairs = append(pairs, pair{"default/" + name, "default/" + cache})
		}
	}
	random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	for _, pod := range pods {
		objects = append(objects, pod)
	}
	return objects, pairs
}

func servicePod(name string, gpus int64, labels map[string]string, near string) *v1.Pod {
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("32Gi")}
	if gpus > 0 {
		requests["nvidia.com/gpu"] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: labels},
		Spec: v1.PodSpec{SchedulerName: *profile, RestartPolicy: v1.RestartPolicyAlways, Containers: []v1.Container{
			{Name: "main", Image: "replay.invalid/main", Resources: v1.ResourceRequirements{Requests: requests}},
		}},
	}
	if near != "" {
		pod.Annotations = map[string]string{"berth.dev/near": near}
	}
	return pod
}
