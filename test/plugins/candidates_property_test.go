package plugins_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/pkg/schedulerconfig"
)

// randomCluster has nodes of a few kinds in three pools, one of them tainted; half of the nodes are in use.
func randomCluster(random *rand.Rand, n int) ([]*v1.Node, []*v1.Pod) {
	nodes := nodesOf(n)
	var pods []*v1.Pod
	for i, node := range nodes {
		pool := random.IntN(3)
		node.Labels["pool"] = fmt.Sprint(pool)
		if pool == 2 {
			node.Spec.Taints = []v1.Taint{{Key: "dedicated", Value: "two", Effect: v1.TaintEffectNoSchedule}}
		}
		if random.IntN(20) == 0 {
			node.Spec.Unschedulable = true
		}
		if random.IntN(10) == 0 {
			node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: "rather-not", Effect: v1.TaintEffectPreferNoSchedule})
		}
		if random.IntN(8) == 0 {
			node.Labels["karpenter.sh/capacity-type"] = "spot"
		}
		if random.IntN(3) == 0 {
			node.Status.Images = []v1.ContainerImage{{Names: []string{"registry.example/work:1"}, SizeBytes: 4 << 30}}
		}
		if random.IntN(2) == 0 {
			k := kinds[i%len(kinds)]
			pod := podOf("on-"+node.Name, 1000*(1+random.IntN(k.cores/2)), 1024*(1+random.IntN(k.gib/2)), random.IntN(k.gpus+1))
			pod.Spec.NodeName = node.Name
			pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": fmt.Sprint(random.IntN(20))}
			pods = append(pods, pod)
		}
	}
	return nodes, pods
}

func randomPod(random *rand.Rand, name string) *v1.Pod {
	pod := podOf(name, 100*(1+random.IntN(160)), 256*(1+random.IntN(256)), []int{0, 0, 1, 1, 2, 4, 8}[random.IntN(7)])
	if random.IntN(4) == 0 {
		pod.Spec.NodeSelector = map[string]string{"pool": fmt.Sprint(random.IntN(3))}
	}
	if random.IntN(3) == 0 {
		pod.Spec.Tolerations = []v1.Toleration{{Key: "dedicated", Operator: v1.TolerationOpExists}}
	}
	if random.IntN(4) == 0 {
		pod.Annotations = map[string]string{"berth.dev/spot": "tolerate"}
	}
	if random.IntN(4) == 0 {
		pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": fmt.Sprint(random.IntN(20))}
	}
	if random.IntN(10) == 0 {
		pod.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 8080, ContainerPort: 8080, Protocol: v1.ProtocolTCP}}
	}
	if random.IntN(20) == 0 {
		pod.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("1000")
	}
	return pod
}

func TestTheChosenNodeHasTheBestScoreOfAllNodes(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{profileName, "gpu-aware-scheduler", "cost-optimized-scheduler", "gang-scheduler"} {
		for seed := range uint64(6) {
			t.Run(fmt.Sprintf("%s, cluster %d", profile, seed), func(t *testing.T) {
				t.Parallel()
				placeMany(t, shipped(t), profile, seed, 0)
			})
		}
	}
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("a profile without GPUAware, cluster %d", seed), func(t *testing.T) {
			t.Parallel()
			c := shipped(t)
			for i := range c.Component.Profiles {
				enabled := &c.Component.Profiles[i].Plugins.MultiPoint.Enabled
				*enabled = slices.DeleteFunc(*enabled, func(p schedulerapi.Plugin) bool { return p.Name == "GPUAware" })
			}
			placeMany(t, c, "cost-optimized-scheduler", seed, 0)
		})
	}
}

// With few candidates, those that are left out may be better by what is not known of classes: the weights of
// NodeResourcesBalancedAllocation and ImageLocality.
func TestFewCandidatesLoseNoMoreThanWhatIsNotKnownOfClasses(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("cluster %d", seed), func(t *testing.T) {
			t.Parallel()
			placeMany(t, tuned(t, 2, func(*schedulerapi.KubeSchedulerConfiguration) {}), profileName, seed, 200)
		})
	}
}

// placeMany places pods one after another and checks that each is on a node with the best score of all nodes but for
// loss.
func placeMany(t *testing.T, configuration *schedulerconfig.Configuration, profile string, seed uint64, loss int64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	nodes, pods := randomCluster(random, 140+random.IntN(200))
	r := newRigWith(t, configuration, profile, nodes, pods...)
	r.totals(t, randomPod(random, "first")) // plugins get to know the nodes
	placed := 0
	for i := range 40 {
		pod := randomPod(random, fmt.Sprint(i))
		pod.Spec.SchedulerName = profile
		// What GPUAware learns from the pods that informers tell of may change between two cycles.
		var result scheduler.ScheduleResult
		var err error
		totals := r.totals(t, pod)
		for changed := true; changed; {
			before := totals
			result, err = r.choose(t, r.best, pod)
			totals = r.totals(t, pod)
			changed = !maps.Equal(before, totals)
		}
		_, want := r.choose(t, r.all, pod)
		if err != nil || want != nil {
			if fmt.Sprint(err) != fmt.Sprint(want) {
				t.Errorf("pod %d: got %v, with all nodes %v", i, err, want)
			}
			continue
		}
		best := slices.Max(slices.Collect(maps.Values(totals)))
		if got := totals[result.SuggestedHost]; got < best-loss {
			t.Errorf("pod %d is on %s with %d, the best node has %d", i, result.SuggestedHost, got, best)
		}
		placed++
		r.assume(t, pod, result.SuggestedHost)
	}
	if placed < 20 {
		t.Fatalf("only %d pods were placed", placed)
	}
}
