package plugins_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/require"
)

// drawingApps is the shipped configuration in which pods of an app are drawn together.
func drawingApps(t *testing.T) *schedulerconfig.Configuration {
	t.Helper()
	c := shipped(t)
	for _, p := range c.Component.Profiles {
		for _, plugin := range p.PluginConfig {
			if args, ok := plugin.Args.(*config.NetworkTopologyArgs); ok {
				args.AppLabel = new("app.kubernetes.io/part-of")
			}
		}
	}
	return c
}

// TestNearNodesAreCandidatesWhateverTheirClass has a peer in a rack of nodes that are all in the class of hundreds of
// others, and on a node that packing likes least.
func TestNearNodesAreCandidatesWhateverTheirClass(t *testing.T) {
	t.Parallel()
	peer := podOf("peer", 1000, 1024, 0)
	peer.Labels, peer.Spec.NodeName = map[string]string{"app.kubernetes.io/part-of": "shop"}, "n00421"
	r := newRigWith(t, drawingApps(t), profileName, nodesOf(600), peer)
	plain, near := podOf("plain", 1000, 1024, 1), podOf("near", 1000, 1024, 1)
	near.Labels = map[string]string{"app.kubernetes.io/part-of": "shop"}
	for _, pod := range []*v1.Pod{plain, near} {
		if got := r.seen(t, upstream.NewCycleState(), pod); got >= 600 {
			t.Errorf("the framework is given all %d nodes for pod %s", got, pod.Name)
		}
	}
	rack := func(pod *v1.Pod) string {
		t.Helper()
		result, err := r.choose(t, r.best, pod)
		require.NoError(t, err)
		info, err := r.snapshot.NodeInfos().Get(result.SuggestedHost)
		require.NoError(t, err)
		return info.Node().Labels["topology.kubernetes.io/rack"]
	}
	if got := rack(plain); got == "r21" {
		t.Fatalf("a pod without peers is in rack %s anyway", got)
	}
	if got := rack(near); got != "r21" {
		t.Errorf("the pod is in rack %s, its peer in r21", got)
	}
}
