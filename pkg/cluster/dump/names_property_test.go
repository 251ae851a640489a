package dump

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/cluster/inputs"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/test/harness/require"
)

// secrets are values that tell something of a cluster; each has the word by which it is found.
var secrets = []string{"acme-a", "acme-b", "acme-c.d", "acme_e"}

// drawLabels draws labels with keys of the cluster, "rank" with numbers.
func drawLabels(t *rapid.T, what string) map[string]string {
	drawn := map[string]string{"rank": fmt.Sprint(rapid.IntRange(0, 5).Draw(t, what+" rank"))}
	for _, key := range []string{"team", "example.com/tier", "kubernetes.io/hostname"} {
		if rapid.Bool().Draw(t, what+" has "+key) {
			drawn[key] = rapid.SampledFrom(secrets).Draw(t, what+" "+key)
		}
	}
	return drawn
}

func drawRequirement(t *rapid.T, key string) v1.NodeSelectorRequirement {
	if key == "rank" {
		return v1.NodeSelectorRequirement{Key: key, Values: []string{fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "bound"))},
			Operator: rapid.SampledFrom([]v1.NodeSelectorOperator{v1.NodeSelectorOpGt, v1.NodeSelectorOpLt}).Draw(t, "operator")}
	}
	return v1.NodeSelectorRequirement{Key: key,
		Operator: rapid.SampledFrom([]v1.NodeSelectorOperator{v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn}).Draw(t,
			"operator"),
		Values: rapid.SliceOfNDistinct(rapid.SampledFrom(secrets), 1, 2, rapid.ID[string]).Draw(t, "values")}
}

func drawNode(t *rapid.T, name string) *v1.Node {
	node := &v1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: drawLabels(t, name)}}
	if rapid.Bool().Draw(t, name+" is tainted") {
		node.Spec.Taints = []v1.Taint{{Key: "team", Value: rapid.SampledFrom(secrets).Draw(t, "taint"),
			Effect: v1.TaintEffectNoSchedule}}
	}
	return node
}

func drawPod(t *rapid.T, name string, nodes []*v1.Node) *v1.Pod {
	pod := &v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: rapid.SampledFrom(secrets[:2]).Draw(t, "namespace"),
			Labels: drawLabels(t, name)}}
	pod.Labels["scheduling.x-k8s.io/pod-group"] = rapid.SampledFrom(secrets[:2]).Draw(t, "gang")
	pod.Spec.NodeName = rapid.SampledFrom(nodes).Draw(t, "node").Name
	if rapid.Bool().Draw(t, "selects nodes") {
		pod.Spec.NodeSelector = map[string]string{"team": rapid.SampledFrom(secrets).Draw(t, "selected")}
	}
	key := rapid.SampledFrom([]string{"team", "example.com/tier", "rank"}).Draw(t, "key")
	pod.Spec.Affinity = &v1.Affinity{
		NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{drawRequirement(t, key)}}}}},
		PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			TopologyKey: "topology.kubernetes.io/zone",
			Namespaces:  []string{rapid.SampledFrom(secrets[:2]).Draw(t, "peers' namespace")},
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
				"team": rapid.SampledFrom(secrets).Draw(t, "peers")}}}}},
	}
	if rapid.Bool().Draw(t, "tolerates") {
		pod.Spec.Tolerations = []v1.Toleration{{Key: "team", Value: rapid.SampledFrom(secrets).Draw(t, "tolerated")}}
	}
	return pod
}

// relations are what a scheduler compares of pods with nodes and with each other.
func relations(t *rapid.T, nodes []*v1.Node, pods []*v1.Pod) string {
	var all []string
	say := func(what string, i, j int, holds bool) {
		all = append(all, fmt.Sprint(what, " ", i, " ", j, ": ", holds))
	}
	for i, pod := range pods {
		for j, node := range nodes {
			matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
			require.NoError(t, err)
			_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints,
				pod.Spec.Tolerations, nil, true)
			say("selects", i, j, matches)
			say("tolerates", i, j, !untolerated)
			say("is on", i, j, pod.Spec.NodeName == node.Name)
		}
		term := pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		require.NoError(t, err)
		for j, other := range pods {
			mine, _, err := read.Of(pod)
			require.NoError(t, err)
			theirs, _, err := read.Of(other)
			require.NoError(t, err)
			say("is near", i, j, term.Namespaces[0] == other.Namespace && selector.Matches(labels.Set(other.Labels)))
			say("is of the gang of", i, j, mine == theirs)
		}
	}
	return strings.Join(all, "\n")
}

// Whatever the names are, none is left, and every comparison that a scheduler makes has the same outcome.
func TestHashedNamesRelateAsTheNamesDo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keep := func(obj runtime.Object) runtime.Object {
			kept, err := inputs.Keep(obj)
			require.NoError(t, err)
			return kept
		}
		var nodes, hashedNodes []*v1.Node
		var pods, hashedPods []*v1.Pod
		for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
			nodes = append(nodes, keep(drawNode(t, fmt.Sprint("acme-node-", i))).(*v1.Node))
		}
		for i := range rapid.IntRange(1, 3).Draw(t, "pods") {
			pods = append(pods, keep(drawPod(t, fmt.Sprint("acme-pod-", i), nodes)).(*v1.Pod))
		}
		h := NewNameHasher([]byte("key"), usualKeys())
		var objects []runtime.Object
		for _, node := range nodes {
			objects = append(objects, node)
		}
		for _, pod := range pods {
			objects = append(objects, pod)
		}
		for _, obj := range objects {
			hashed, err := h.Hash(obj)
			require.NoError(t, err)
			if text, err := json.Marshal(hashed); err != nil || strings.Contains(string(text), "acme") {
				t.Fatalf("a name is left (%v): %s", err, text)
			}
			switch hashed := hashed.(type) {
			case *v1.Node:
				hashedNodes = append(hashedNodes, hashed)
			case *v1.Pod:
				hashedPods = append(hashedPods, hashed)
			}
		}
		if was, is := relations(t, nodes, pods), relations(t, hashedNodes, hashedPods); was != is {
			t.Fatalf("before:\n%s\nwith hashes:\n%s", was, is)
		}
	})
}
