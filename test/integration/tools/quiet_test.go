package tools_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

var podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

// TestOnAQuietCluster has the tests that foretell what the scheduler does, or that ask what it has done, with the whole
// cluster. They follow each other, each with nodes of its own. Without kubelets no node begins with a taint that is
// taken off while a pod is asked about.
//
//nolint:tparallel // see above
func TestOnAQuietCluster(t *testing.T) {
	t.Parallel()
	cluster := box.Start(t, unequalPrices, sandbox.Options{NoKubelet: true})
	t.Run("the scheduler says why it decided, and only to those who may know",
		func(t *testing.T) { saysWhyItDecided(t, cluster) })
	begin(t, cluster, unequalSizes)
	t.Run("the scheduler binds where it was explained", func(t *testing.T) { bindsWhereItWasExplained(t, cluster) })
	for _, profile := range []string{"berth-scheduler", "cost-optimized-scheduler", "gpu-aware-scheduler"} {
		begin(t, cluster, replayedNodes)
		t.Run("a replay places pods as the scheduler does: "+profile,
			func(t *testing.T) { placesAsTheReplay(t, cluster, profile) })
	}
}

// begin removes all pods, PodGroups and nodes, makes these nodes, and has the scheduler begin again, without what it
// has learnt.
func begin(t *testing.T, cluster *box.Box, nodes string) {
	t.Helper()
	ctx := t.Context()
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	for _, namespace := range []string{metav1.NamespaceDefault, replayed} {
		require.NoError(t, cluster.Client.CoreV1().Pods(namespace).DeleteCollection(ctx, now, metav1.ListOptions{}))
		if err := cluster.Dynamic.Resource(podGroups).Namespace(namespace).DeleteCollection(ctx, now,
			metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, cluster.Client.CoreV1().Nodes().DeleteCollection(ctx, now, metav1.ListOptions{}))
	made, err := sandbox.ParseNodes("nodes.yaml", []byte(nodes))
	require.NoError(t, err)
	for _, node := range made {
		if _, err := cluster.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	cluster.KillScheduler(t)
}

// decided waits until a pod has a node, which it returns, or a reason for having none.
func decided(t *testing.T, cluster *box.Box, name string) (node string) {
	t.Helper()
	pod := cluster.AwaitPod(t, name, "to be decided about",
		func(pod *v1.Pod) (bool, error) { return pod.Spec.NodeName != "" || box.Reason(pod) != "", nil })
	return pod.Spec.NodeName
}
