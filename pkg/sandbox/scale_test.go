package sandbox

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestScaledNodes(t *testing.T) {
	t.Parallel()
	file := `shapes:
- {name: a, count: 2, spread: {topology.kubernetes.io/rack: [r1, r2]}, allocatable: {cpu: "8", nvidia.com/gpu: "4"}}
---
kind: Node
metadata: {name: a-0-copy-1, labels: {kubernetes.io/hostname: other}}
spec: {providerID: cloud:///machine}
status: {allocatable: {cpu: "2"}}
`
	given, err := parseNodes([]byte(file))
	require.NoError(t, err)
	nodes, err := ScaleNodes(given, 8)
	require.NoError(t, err)
	var got []string
	for _, n := range nodes {
		gpus := n.Status.Allocatable["nvidia.com/gpu"]
		rack := n.Labels["topology.kubernetes.io/rack"]
		host := n.Labels[corev1.LabelHostname]
		got = append(got, strings.Join([]string{n.Name, host, rack, gpus.String(), n.Spec.ProviderID}, ":"))
	}
	// The name of the third node is that of a copy of the first.
	want := []string{
		"a-0:a-0:r1:4:", "a-1:a-1:r2:4:", "a-0-copy-1:a-0-copy-1::0:cloud:///machine",
		"a-0-copy-2:a-0-copy-2:r1:4:", "a-1-copy-1:a-1-copy-1:r2:4:", "a-0-copy-1-copy-1:a-0-copy-1-copy-1::0:",
		"a-0-copy-3:a-0-copy-3:r1:4:", "a-1-copy-2:a-1-copy-2:r2:4:",
	}
	assert.Equal(t, "nodes", want, got)
	if same, err := ScaleNodes(given, 0); err != nil || len(same) != len(given) {
		t.Errorf("without a scale there are %d nodes, %v", len(same), err)
	}
}

// Copies of long names that differ only in the end have names that are valid, differ, and fit into the label.
func TestCopiesOfLongNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 62) + "." + strings.Repeat("b", 40)
	one := func(end string) string { return "{kind: Node, metadata: {name: " + long + end + "}}\n" }
	given, err := parseNodes([]byte(one("-1.c") + "---\n" + one("-2.c")))
	require.NoError(t, err)
	nodes, err := ScaleNodes(given, 300)
	require.NoError(t, err)
	seen := map[string]bool{}
	for i, n := range nodes {
		if errs := validation.IsDNS1123Subdomain(n.Name); len(errs) > 0 || seen[n.Name] {
			t.Errorf("node %q: seen already %v, %v", n.Name, seen[n.Name], errs)
		}
		seen[n.Name] = true
		label := n.Labels[corev1.LabelHostname]
		if i >= len(given) && (label != n.Name || len(validation.IsValidLabelValue(label)) > 0) {
			t.Errorf("node %q has the label %q", n.Name, label)
		}
	}
}
