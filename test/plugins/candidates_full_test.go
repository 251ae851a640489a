package plugins_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/plugins/gpuaware"
	"berth.dev/berth/test/harness/require"
)

// Plugins that pack rank first the nodes on which something runs. Where hundreds of these have no room for a pod,
// those that have some must be found without a look at all nodes.
func TestFullNodesDoNotMakeACycleLookAtAllNodes(t *testing.T) {
	t.Parallel()
	const used, unused = 1000, 500
	ask := func(name v1.ResourceName, amount string) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Spec.Containers[0].Resources.Requests[name] = resource.MustParse(amount) }
	}
	has := func(name v1.ResourceName, amount string) func(*v1.Node) {
		return func(n *v1.Node) { n.Status.Allocatable[name] = resource.MustParse(amount) }
	}
	for _, test := range []struct {
		name string
		// unaware leaves GPUAware out.
		unaware bool
		// node changes every node, full those alone that have no room.
		node, full func(*v1.Node)
		// on changes the pods that run, next the one that comes.
		on, next func(*v1.Pod)
	}{
		{name: "their GPUs are taken, and no plugin knows GPUs", unaware: true, on: ask("nvidia.com/gpu", "8"),
			next: ask("nvidia.com/gpu", "1")},
		{name: "they have no GPUs, and no plugin knows GPUs", unaware: true, next: ask("nvidia.com/gpu", "1"),
			full: func(n *v1.Node) { delete(n.Status.Allocatable, "nvidia.com/gpu") }},
		{name: "their network cards are taken", node: has("rdma/hca", "1"), on: ask("rdma/hca", "1"),
			next: ask("rdma/hca", "1")},
		{name: "their huge pages are taken", node: has("hugepages-2Mi", "64Mi"), on: ask("hugepages-2Mi", "64Mi"),
			next: ask("hugepages-2Mi", "2Mi")},
		{name: "they hold as many pods as they may", node: has(v1.ResourcePods, "1")},
		{name: "their disks are full", node: has(v1.ResourceEphemeralStorage, "100Gi"),
			on:   ask(v1.ResourceEphemeralStorage, "100Gi"),
			next: ask(v1.ResourceEphemeralStorage, "1Gi")},
		{name: "the port is taken", on: takePort, next: takePort},
		{name: "a pod runs there that it is kept apart from", on: keepApart, next: keepApart},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tune := func(p *v1.Pod, f func(*v1.Pod)) *v1.Pod {
				if f != nil {
					f(p)
				}
				return p
			}
			var nodes []*v1.Node
			var pods []*v1.Pod
			for i := range used + unused {
				node := nodeOf(i * len(kinds))
				nodes = append(nodes, node)
				if test.node != nil {
					test.node(node)
				}
				if i >= used {
					continue
				}
				if test.full != nil {
					test.full(node)
				}
				pod := tune(podOf(fmt.Sprintf("on-%d", i), 1000+i, 1024, 0), test.on)
				pod.Spec.NodeName = node.Name
				pods = append(pods, pod)
			}
			c := shipped(t)
			if test.unaware {
				leaveOut(c.Component, gpuaware.Name)
			}
			r := newRigWith(t, c, profileName, nodes, pods...)
			next := tune(podOf("next", 1000, 1024, 0), test.next)
			if got := r.seen(t, upstream.NewCycleState(), next); got >= unused {
				t.Errorf("the framework is given %d of %d nodes", got, used+unused)
			}
			got, err := r.choose(t, r.best, next)
			require.NoError(t, err)
			totals := r.totals(t, next)
			if best := slices.Max(slices.Collect(maps.Values(totals))); totals[got.SuggestedHost] != best {
				t.Errorf("the pod goes to %s with %d points, want a node with %d", got.SuggestedHost, totals[got.SuggestedHost],
					best)
			}
		})
	}
}

// leaveOut takes a plugin out of all profiles.
func leaveOut(c *schedulerapi.KubeSchedulerConfiguration, name string) {
	named := func(p schedulerapi.Plugin) bool { return p.Name == name }
	for i := range c.Profiles {
		p := &c.Profiles[i]
		p.Plugins.MultiPoint.Enabled = slices.DeleteFunc(p.Plugins.MultiPoint.Enabled, named)
		p.Plugins.Filter.Enabled = slices.DeleteFunc(p.Plugins.Filter.Enabled, named)
		p.PluginConfig = slices.DeleteFunc(p.PluginConfig, func(c schedulerapi.PluginConfig) bool { return c.Name == name })
	}
}

func takePort(p *v1.Pod) {
	p.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: v1.ProtocolTCP}}
}

func keepApart(p *v1.Pod) {
	p.Labels = map[string]string{"app": "a"}
	p.Spec.Affinity = &v1.Affinity{
		PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			term(v1.LabelHostname)}}}
}
