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
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"berth.dev/berth/hack/bench/live"
	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/gangview"
)

var (
	nodes   = rig.Count("nodes", 200, "number of nodes, of 8 GPUs each")
	gangs   = rig.Count("gangs", 100, "number of gangs")
	size    = rig.Count("size", 8, "members of a gang, of one GPU each")
	repeats = rig.Count("repeats", 3, "how often everything is measured")
	stuck   = flag.Int("stuck", 0, "measure instead what this number of gangs costs that can never start")
	preempt = flag.Bool("preempt", false, "measure instead how long other pods wait while gangs evict pods")
	rest    = flag.Duration("rest", time.Minute, "how long gangs that can never start, or those of -distinct, are watched")

	distinct = flag.String("distinct", "",
		"measure instead how long pods of another namespace wait while gangs are planned whose members"+
			" differ by this: annotation, label, request, toleration, affinity, spread, claim, volume, or same")
	never = flag.Bool("never", false, "with -distinct, gangs that never find room for their last member")
	edits = flag.Int("edits", 0, "with -distinct, edit annotations of members so often a second")
)

// total bounds everything.
const total = time.Hour

func main() { rig.Main("measures what gangs cost on a local control plane.", bench) }

func bench(ctx context.Context, out io.Writer) (results any, err error) {
	ctx, cancel := context.WithTimeout(ctx, total)
	defer cancel()
	measure := compareWays
	switch {
	case *stuck > 0:
		measure = waitForever
	case *distinct != "":
		measure = delayOthers
	case *preempt:
		measure = preemptForGangs
	}
	fleet := fmt.Appendf(nil, "shapes:\n- name: node\n  count: %d\n"+
		"  allocatable: {cpu: \"64\", memory: 256Gi, pods: \"110\", nvidia.com/gpu: \"8\"}\n", *nodes)
	err = live.On(ctx, fleet, func(bed *live.Bed) { results = measure(bed, out) })
	return results, err
}

const profileName = "bench-scheduler"

// way is one way of scheduling the same pods.
type way struct {
	live.Contender
	gang bool
}

// wayOf has a profile with these plugins and their arguments.
func wayOf(name, plugins, pluginArgs string, gang bool, gates []string) way {
	config := fmt.Appendf(nil, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: `+profileName+`
    %s
    %s
`, plugins, pluginArgs)
	return way{live.Contender{Name: name, Profile: profileName, Config: config, Gates: gates}, gang}
}

const (
	coscheduling = `plugins:
      queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
      postFilter: {enabled: [{name: Coscheduling}]}
      multiPoint: {enabled: [{name: Coscheduling}]}`
	// noDefaults leaves out the spreading of pods that do not ask for it, as the profiles that are installed do.
	noDefaults = `pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List}}]`
)

// asInstalled schedules gangs as the installed profiles do.
var asInstalled = wayOf("gangs", coscheduling, noDefaults, true, live.InstalledGates)

var ways = []way{
	wayOf("no gangs, stock", "", "", false, nil),
	wayOf("no gangs, no topology defaults", "", noDefaults, false, nil),
	asInstalled,
	wayOf("gangs, nominated nodes", coscheduling, noDefaults, true, nil),
}

// runFigures are those of one run of the same pods.
type runFigures struct {
	Run             string  `json:"run" row:""`
	Repeat          int     `json:"repeat"`
	PodsPerSecond   float64 `json:"podsPerSecond" column:"pods/s|%.0f"`
	CPUMillisPerPod float64 `json:"cpuMillisPerPod" column:"CPU ms/pod|%.2f"`
	RequestsPerPod  float64 `json:"requestsPerPod" column:"requests/pod|%.2f"`
}

// compareWays schedules the same pods in each way. It returns the figures of every run.
func compareWays(bed *live.Bed, out io.Writer) any {
	var all []runFigures
	for repeat := range *repeats {
		for i, w := range ways {
			figures := w.measure(bed, fmt.Sprintf("bench-%d-%d", repeat, i))
			figures.Repeat = repeat + 1
			all = append(all, figures)
		}
	}
	_, _ = fmt.Fprintf(out, "%d nodes, %d × %d pods; median of %d, least to most\n", *nodes, *gangs, *size, *repeats)
	rig.Fail(rig.Table(out, all))
	return all
}

func (w way) measure(bed *live.Bed, namespace string) runFigures {
	scheduler, bound := bed.Ready(w.Contender, warmPod(namespace))
	defer scheduler.Stop()
	pods, took := *gangs**size, time.Duration(0)
	bed.Settle() // what the first pod makes the scheduler write is not counted
	writes := bed.Writes()
	use := bed.Measure(scheduler, func() {
		began := time.Now()
		live.CreateAll(*gangs, func(i int) {
			gang{namespace, fmt.Sprintf("g%d", i), *size, live.GPUs(1), ""}.create(bed, w.gang)
		})
		bound.Await(pods+1, scheduler)
		took = time.Since(began)
		bed.Settle()
	})
	writes = bed.Writes() - writes
	bed.Empty(namespace)
	return runFigures{
		Run:             w.Name,
		PodsPerSecond:   float64(pods) / took.Seconds(),
		CPUMillisPerPod: 1000 * use.SchedulerCPU.Seconds() / float64(pods),
		RequestsPerPod:  writes / float64(pods),
	}
}

// warmPod is placed before anything is measured.
func warmPod(namespace string) *v1.Pod { return live.Pod(namespace, "warm", profileName, live.GPUs(1)) }

var podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

func createPodGroup(bed *live.Bed, namespace, name string, members int) {
	_, err := bed.Dynamic.Resource(podGroups).Namespace(namespace).Create(bed.Context(),
		gangview.NewPodGroup(namespace, name, members), metav1.CreateOptions{})
	rig.Check(err, "creating PodGroup %s/%s", namespace, name)
}

// gang is pods that are created together, with a priority class or the default.
type gang struct {
	namespace, name string
	members         int
	requests        v1.ResourceList
	priority        string
}

// create creates the members one after the other, with a PodGroup if they are one.
func (g gang) create(bed *live.Bed, grouped bool) {
	if grouped {
		createPodGroup(bed, g.namespace, g.name, g.members)
	}
	for member := range g.members {
		pod := live.Pod(g.namespace, fmt.Sprintf("%s-%d", g.name, member), profileName, g.requests)
		pod.Spec.PriorityClassName = g.priority
		if grouped {
			gangview.Join(pod, g.name)
		}
		bed.CreatePod(pod)
	}
}
