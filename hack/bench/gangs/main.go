// Command gangs measures what gangs cost: pods per second, CPU time of the scheduler per pod, and API requests per pod,
// for the same pods with and without gangs, in the same run, on the local control plane.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"berth.dev/berth/hack/bench/rig"
)

var (
	nodes = flag.Int("nodes", 200, "number of nodes, of 8 GPUs each")
	gangs = flag.Int("gangs", 100, "number of gangs")
	size  = flag.Int("size", 8, "members of a gang, of one GPU each")
)

// config is a KubeSchedulerConfiguration; the profile's plugins are filled in.
const config = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: bench-scheduler
    %s
    pluginConfig:
      - {name: PodTopologySpread, args: {defaultingType: List}}
`

const coscheduling = `plugins:
      queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
      postFilter: {enabled: [{name: Coscheduling}]}
      multiPoint: {enabled: [{name: Coscheduling}]}`

// run is one way of scheduling the same pods.
type run struct {
	name    string
	plugins string
	gang    bool
	gates   []string
}

var runs = []run{
	{"no gangs, stock plugins", "", false, nil},
	{"gangs", coscheduling, true, nil},
	{"gangs, no nominated node", coscheduling, true, []string{"NominatedNodeNameForExpectation=false"}},
}

func main() {
	flag.Parse()
	if err := bench(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func bench() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	bed, err := rig.Start(ctx, fmt.Appendf(nil,
		"shapes:\n- name: n\n  count: %d\n  allocatable: {cpu: \"64\", memory: 256Gi, pods: \"110\", nvidia.com/gpu: \"8\"}\n", *nodes))
	if err != nil {
		return err
	}
	defer func() { _ = bed.Stop() }()
	out := os.Stdout
	_, _ = fmt.Fprintf(out, "%d nodes, %d × %d pods\n%-28s %10s %12s %14s\n", *nodes, *gangs, *size, "", "pods/s", "CPU ms/pod", "requests/pod")
	for i := range runs {
		r, err := measure(ctx, bed, &runs[i], fmt.Sprintf("bench-%d", i))
		if err != nil {
			return fmt.Errorf("%s: %w", runs[i].name, err)
		}
		_, _ = fmt.Fprintf(out, "%-28s %10.0f %12.2f %14.2f\n", runs[i].name, r.podsPerSecond, r.cpuMillisPerPod, r.requestsPerPod)
	}
	return nil
}

type result struct{ podsPerSecond, cpuMillisPerPod, requestsPerPod float64 }

func measure(ctx context.Context, bed *rig.Rig, r *run, namespace string) (result, error) {
	scheduler, err := bed.StartScheduler(fmt.Appendf(nil, config, r.plugins), r.gates...)
	if err != nil {
		return result{}, err
	}
	defer scheduler.Stop()
	if err := bed.Namespace(ctx, namespace); err != nil {
		return result{}, err
	}
	// One pod through the whole way: informers are filled and the scheduler schedules.
	if err := bed.CreatePod(ctx, rig.Pod(namespace, "warm", "bench-scheduler", rig.OneGPU())); err != nil {
		return result{}, err
	}
	if err := bed.AwaitBound(ctx, namespace, 1); err != nil {
		return result{}, err
	}
	writesBefore, err := bed.Writes(ctx)
	if err != nil {
		return result{}, err
	}
	cpuBefore, err := scheduler.CPU()
	if err != nil {
		return result{}, err
	}
	began := time.Now()
	if err := rig.CreateAll(*gangs, func(i int) error { return createGang(ctx, bed, namespace, fmt.Sprintf("g%d", i), r.gang) }); err != nil {
		return result{}, err
	}
	total := *gangs * *size
	if err := bed.AwaitBound(ctx, namespace, total+1); err != nil {
		return result{}, err
	}
	took := time.Since(began)
	// What a run costs includes what is written a moment later.
	settle := time.NewTimer(3 * time.Second)
	<-settle.C
	cpuAfter, err := scheduler.CPU()
	if err != nil {
		return result{}, err
	}
	writesAfter, err := bed.Writes(ctx)
	if err != nil {
		return result{}, err
	}
	return result{
		podsPerSecond:   float64(total) / took.Seconds(),
		cpuMillisPerPod: float64((cpuAfter - cpuBefore).Microseconds()) / 1000 / float64(total),
		requestsPerPod:  (writesAfter - writesBefore) / float64(total),
	}, bed.Empty(ctx, namespace)
}

var podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

// createGang creates the members of a gang one after the other, with a PodGroup if they are one.
func createGang(ctx context.Context, bed *rig.Rig, namespace, name string, gang bool) error {
	if gang {
		group := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"minMember": int64(*size)}}}
		if _, err := bed.Dynamic.Resource(podGroups).Namespace(namespace).Create(ctx, group, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating PodGroup %s/%s: %w", namespace, name, err)
		}
	}
	for member := range *size {
		pod := rig.Pod(namespace, fmt.Sprintf("%s-%d", name, member), "bench-scheduler", rig.OneGPU())
		if gang {
			pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": name}
		}
		if err := bed.CreatePod(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}
