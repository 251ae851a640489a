// Command gangs measures what gangs cost: pods per second, CPU time of the scheduler per pod, and API requests per pod,
// for the same pods with and without gangs, in the same run, on the local control plane; with -stuck what gangs cost
// that wait and can never start, and how soon their reasons follow a change of the cluster; with -preempt how long
// other pods wait while gangs evict pods; with -distinct how long they wait while gangs are planned whose members all
// differ.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"berth.dev/berth/hack/bench/rig"
)

var (
	nodes   = flag.Int("nodes", 200, "number of nodes, of 8 GPUs each")
	gangs   = flag.Int("gangs", 100, "number of gangs")
	size    = flag.Int("size", 8, "members of a gang, of one GPU each")
	repeats = flag.Int("repeats", 3, "how often everything is measured")
	stuck   = flag.Int("stuck", 0, "measure instead what so many gangs cost that can never start")
	preempt = flag.Bool("preempt", false, "measure instead how long other pods wait while gangs evict pods")
	rest    = flag.Duration("rest", time.Minute, "how long gangs that can never start, or those of -distinct, are watched")

	distinct = flag.String("distinct", "",
		"measure instead how long pods of another namespace wait while gangs are planned whose members"+
			" differ by this: annotation, label, request, toleration, affinity, spread, claim, volume, or same")
	never = flag.Bool("never", false, "with -distinct, gangs that never find room for their last member")
	edits = flag.Int("edits", 0, "with -distinct, edit annotations of members so often a second")

	jsonFile = flag.String("json", "", "write the figures as JSON to this file")
)

const profileName = "bench-scheduler"

// config is a KubeSchedulerConfiguration; the profile's plugins and their arguments are filled in.
const config = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: ` + profileName + `
    %s
    %s
`

const coscheduling = `plugins:
      queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
      postFilter: {enabled: [{name: Coscheduling}]}
      multiPoint: {enabled: [{name: Coscheduling}]}`

// noDefaults leaves out the spreading of pods that do not ask for it, as the profiles that are installed do.
const noDefaults = `pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List}}]`

// run is one way of scheduling the same pods.
type run struct {
	name                string
	plugins, pluginArgs string
	gang                bool
	gates               []string
}

var runs = []run{
	{"no gangs, stock", "", "", false, nil},
	{"no gangs, no topology defaults", "", noDefaults, false, nil},
	{"gangs", coscheduling, noDefaults, true, rig.InstalledGates},
	{"gangs, nominated nodes", coscheduling, noDefaults, true, nil},
}

func main() {
	flag.Parse()
	if err := bench(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func bench(out io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	bed, err := rig.Start(ctx, fmt.Appendf(nil,
		"shapes:\n- name: node\n  count: %d\n  allocatable: {cpu: \"64\", memory: 256Gi, pods: \"110\", nvidia.com/gpu: "+
			"\"8\"}\n", *nodes))
	if err != nil {
		return err
	}
	defer func() { _ = bed.Stop() }()
	session, err := rig.Begin()
	if err != nil {
		return err
	}
	measured := compareRuns
	switch {
	case *stuck > 0:
		measured = waitInVain
	case *distinct != "":
		measured = delayOthers
	case *preempt:
		measured = preemptForGangs
	}
	figures, err := measured(ctx, bed, out)
	if err != nil {
		return err
	}
	return session.End(out, *jsonFile, figures)
}

// compareRuns schedules the same pods in each way. It returns the figures of every run.
func compareRuns(ctx context.Context, bed *rig.Rig, out io.Writer) (any, error) {
	var all []runFigures
	for repeat := range *repeats {
		for i := range runs {
			figures, err := measure(ctx, bed, &runs[i], fmt.Sprintf("bench-%d-%d", repeat, i))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", runs[i].name, err)
			}
			figures.Repeat = repeat + 1
			all = append(all, figures)
		}
	}
	_, _ = fmt.Fprintf(out, "%d nodes, %d × %d pods; median of %d, least to most\n%-32s %20s %20s %20s\n",
		*nodes, *gangs, *size, *repeats, "", "pods/s", "CPU ms/pod", "requests/pod")
	for i := range runs {
		spread := func(format string, figure func(runFigures) float64) string {
			var of []float64
			for _, figures := range all {
				if figures.Run == runs[i].name {
					of = append(of, figure(figures))
				}
			}
			return rig.SpreadOf(of).Text(format)
		}
		_, _ = fmt.Fprintf(out, "%-32s %20s %20s %20s\n", runs[i].name,
			spread("%.0f", func(f runFigures) float64 { return f.PodsPerSecond }),
			spread("%.2f", func(f runFigures) float64 { return f.CPUMillisPerPod }),
			spread("%.2f", func(f runFigures) float64 { return f.RequestsPerPod }))
	}
	return all, nil
}

// ready starts a scheduler and schedules one pod with it: its informers are filled then, and it schedules.
func ready(ctx context.Context, bed *rig.Rig, r *run, namespace string) (*rig.Scheduler, error) {
	scheduler, err := bed.StartScheduler(fmt.Appendf(nil, config, r.plugins, r.pluginArgs), r.gates...)
	if err != nil {
		return nil, err
	}
	if err := bed.Namespace(ctx, namespace); err != nil {
		scheduler.Stop()
		return nil, err
	}
	if err := bed.CreatePod(ctx, rig.Pod(namespace, "warm", profileName, rig.OneGPU())); err != nil {
		scheduler.Stop()
		return nil, err
	}
	if err := bed.AwaitBound(ctx, namespace, 1); err != nil {
		scheduler.Stop()
		return nil, err
	}
	return scheduler, nil
}

func measure(ctx context.Context, bed *rig.Rig, r *run, namespace string) (runFigures, error) {
	scheduler, err := ready(ctx, bed, r, namespace)
	if err != nil {
		return runFigures{}, err
	}
	defer scheduler.Stop()
	writesBefore, err := bed.Writes(ctx)
	if err != nil {
		return runFigures{}, err
	}
	cpuBefore, err := scheduler.CPU()
	if err != nil {
		return runFigures{}, err
	}
	began := time.Now()
	if err := rig.CreateAll(*gangs, func(i int) error {
		return createGang(ctx, bed, namespace, fmt.Sprintf("g%d", i), rig.OneGPU(), gangOf{*size, r.gang, ""})
	}); err != nil {
		return runFigures{}, err
	}
	total := *gangs * *size
	if err := bed.AwaitBound(ctx, namespace, total+1); err != nil {
		return runFigures{}, err
	}
	took := time.Since(began)
	if err := rig.Settle(ctx); err != nil {
		return runFigures{}, err
	}
	cpuAfter, err := scheduler.CPU()
	if err != nil {
		return runFigures{}, err
	}
	writesAfter, err := bed.Writes(ctx)
	if err != nil {
		return runFigures{}, err
	}
	return runFigures{
		Run:             r.name,
		PodsPerSecond:   float64(total) / took.Seconds(),
		CPUMillisPerPod: float64((cpuAfter - cpuBefore).Microseconds()) / 1000 / float64(total),
		RequestsPerPod:  (writesAfter - writesBefore) / float64(total),
	}, bed.Empty(ctx, namespace)
}

var podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

// gangOf is what pods are created together: members, as a gang or not, with a priority class or the default.
type gangOf struct {
	members  int
	gang     bool
	priority string
}

// createGang creates the members of a gang one after the other, with a PodGroup if they are one.
func createGang(ctx context.Context, bed *rig.Rig, namespace, name string, requests v1.ResourceList, of gangOf) error {
	if of.gang {
		group := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1",
			"kind":     "PodGroup",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"minMember": int64(of.members)}}}
		if _, err := bed.Dynamic.Resource(podGroups).Namespace(namespace).Create(ctx, group,
			metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating PodGroup %s/%s: %w", namespace, name, err)
		}
	}
	for member := range of.members {
		pod := rig.Pod(namespace, fmt.Sprintf("%s-%d", name, member), profileName, requests)
		pod.Spec.PriorityClassName = of.priority
		if of.gang {
			pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": name}
		}
		if err := bed.CreatePod(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}
