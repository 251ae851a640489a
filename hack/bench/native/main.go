// Command native measures how fast Kubernetes' own PodGroups start: planned by the core of kube-scheduler, with its
// feature gates, and by Coscheduling, without them. The nodes, pods and PodGroups are those of upstream's cases
// podgroup/gangscheduling and podgroup/tas of scheduler_perf. Upstream's harness has the gates of the API server and of
// the scheduler in one process; here they are two, as the gates differ.
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/hack/bench/live"
	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/sandbox"
)

// suite is one of upstream's cases.
type suite struct {
	name, description string
	// level is the label whose value the pods of a group share, empty for none.
	level string
	size  int
}

// Describe is for the flag that chooses among the suites.
func (s *suite) Describe() (name, description string) { return s.name, s.description }

var suites = []*suite{
	{"gangs", "groups of 3 pods, as in podgroup/gangscheduling", "", 3},
	{"tas", "groups of 4 pods, each in one rack of 100 nodes, as in podgroup/tas", rackLabel, 4},
}

const (
	rackLabel = "topology.kubernetes.io/rack"
	rackNodes = 100
)

var (
	nodes   = rig.Count("nodes", 5000, "number of nodes, of 4 CPUs each")
	pods    = rig.Count("pods", 3000, "number of pods")
	size    = rig.Count("size", 0, "pods of a group; upstream's small ones unless it is set")
	chosen  = rig.Some("suites", suites, "cases to measure")
	repeats = rig.Count("repeats", 3, "how often each is measured")
)

// contenders are the ways to plan the groups.
func contenders() []live.Contender {
	core := live.Stock()
	core.Name, core.Gates = "core", []string{"GenericWorkload=true", "TopologyAwareWorkloadScheduling=true"}
	berth := live.Installed("berth", "gang-scheduler")
	berth.Gates = append([]string{"TopologyAwareWorkloadScheduling=false", "GenericWorkload=false"}, berth.Gates...)
	return []live.Contender{core, berth}
}

// run is what one run shows.
type run struct {
	Suite           string  `json:"suite" row:""`
	Pods            int     `json:"pods"`
	Size            int     `json:"size"`
	Contender       string  `json:"contender" row:""`
	Repeat          int     `json:"repeat"`
	PodsPerSecond   float64 `json:"podsPerSecond" column:"pods/s|%.0f"`
	PodsOverCore    float64 `json:"podsOverCore,omitempty" column:"pods/s\n× core|%.2f|optional"`
	CPUMillisPerPod float64 `json:"cpuMillisPerPod" column:"CPU\nms/pod|%.2f"`
	// OtherCores is how many cores were busy on average with what is no part of the benchmark.
	OtherCores float64 `json:"otherCores" column:"other work\ncores|%.2f"`
}

func main() {
	rig.Main(`creates Kubernetes' own PodGroups and their pods on a local control plane, and measures until all are bound.

  # Upstream's smaller cases at 5,000 nodes
  go run ./hack/bench/native

  # Three groups of 1,000 pods
  go run ./hack/bench/native --size 1000 --repeats 1`, bench)
}

func bench(ctx context.Context, out io.Writer) (results any, err error) {
	var fleet []byte
	fleet = append(fleet, "shapes:\n"...)
	for at := 0; at < *nodes; at += rackNodes {
		fleet = fmt.Appendf(fleet, "- name: rack-%d\n  count: %d\n  labels: {%s: rack-%d}\n"+
			"  allocatable: {cpu: \"4\", memory: 32Gi, pods: \"110\"}\n", at/rackNodes, min(rackNodes, *nodes-at), rackLabel,
			at/rackNodes)
	}
	err = live.On(ctx, fleet, func(bed *live.Bed) { results = compare(bed, out) }, func(o *sandbox.Options) {
		o.FeatureGates = []string{"GenericWorkload=true", "TopologyAwareWorkloadScheduling=true"}
		o.RuntimeConfig = []string{"scheduling.k8s.io/v1beta1=true"}
	})
	return results, err
}

func compare(bed *live.Bed, out io.Writer) any {
	var all []run
	for _, s := range *chosen {
		of := *s
		if *size > 0 {
			of.size = *size
		}
		for repeat := range *repeats {
			var core float64
			for _, c := range contenders() {
				r := of.measure(bed, c, fmt.Sprintf("%s-%d-%s", s.name, repeat, c.Name))
				r.Repeat = repeat + 1
				if c.Name == "core" {
					core = r.PodsPerSecond
				} else {
					r.PodsOverCore = r.PodsPerSecond / core
				}
				all = append(all, r)
			}
		}
	}
	_, _ = fmt.Fprintf(out, "%d nodes, %d pods; median of %d, least to most\n", *nodes, *pods, *repeats)
	rig.Fail(rig.Table(out, all))
	return all
}

func (s *suite) measure(bed *live.Bed, c live.Contender, namespace string) run {
	scheduler, bound := bed.Ready(c, s.pod(namespace, "warm", c.Profile))
	defer scheduler.Stop()
	groups, took := *pods/s.size, time.Duration(0)
	live.CreateAll(groups, func(i int) { s.createGroup(bed, namespace, i) })
	bed.Settle()
	use := bed.Measure(scheduler, func() {
		began := time.Now()
		bed.CreatePods(0, groups*s.size, func(i int) *v1.Pod {
			pod, group := s.pod(namespace, fmt.Sprintf("pod-%d", i), c.Profile), groupName(i/s.size)
			pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group}
			return pod
		})
		bound.Await(groups*s.size+1, scheduler)
		took = time.Since(began)
		bed.Settle()
	})
	bed.Empty(namespace)
	rig.Check(bed.Client.SchedulingV1beta1().PodGroups(namespace).DeleteCollection(bed.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{}), "deleting the PodGroups of namespace %s", namespace)
	measured := float64(groups * s.size)
	return run{Suite: s.name, Pods: groups * s.size, Size: s.size, Contender: c.Name,
		PodsPerSecond: measured / took.Seconds(), CPUMillisPerPod: 1000 * use.SchedulerCPU.Seconds() / measured,
		OtherCores: use.OtherCores}
}

func groupName(i int) string { return fmt.Sprintf("gang-%d", i) }

func (s *suite) pod(namespace, name, profile string) *v1.Pod {
	return live.Pod(namespace, name, profile, v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"),
		v1.ResourceMemory: resource.MustParse("100Mi")})
}

func (s *suite) createGroup(bed *live.Bed, namespace string, i int) {
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: groupName(i), Namespace: namespace}}
	least := int32(s.size) //nolint:gosec // a flag
	group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: least}
	if s.level != "" {
		group.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{
			Topology: []schedulingv1beta1.TopologyConstraint{{Key: s.level}}}
	}
	_, err := bed.Client.SchedulingV1beta1().PodGroups(namespace).Create(bed.Context(), group, metav1.CreateOptions{})
	rig.Check(err, "creating PodGroup %s/%s", namespace, group.Name)
}
