package overview

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// What a cluster has of levels is what its columns, its map and its workloads name.
func TestDomainsAreNamedByTheNarrowestLevelOfANode(t *testing.T) {
	t.Parallel()
	const (
		layer3, layer1 = "topology.k8s.aws/network-node-layer-3", "topology.k8s.aws/network-node-layer-1"
		subblock       = "cloud.google.com/gce-topology-subblock"
	)
	for name, tc := range map[string]struct {
		// nodes are the labels of the nodes n1, n2, ...
		nodes []string
		// heading and cells are those of the column, titles those of the map, where is that of a job on all nodes.
		heading       string
		cells, titles []string
		where         string
	}{
		"none": {[]string{"", ""}, "Domain", []string{"", ""}, []string{"Tesla-T4"}, "n1, n2"},
		"EKS": {[]string{v1.LabelTopologyZone + "=a " + layer3 + "=nn-1 " + layer1 + "=nn-0", layer3 + "=nn-2"},
			"network-node-layer-3", []string{"nn-1", "nn-2"},
			[]string{"network-node-layer-3=nn-1  Tesla-T4", "network-node-layer-3=nn-2  Tesla-T4"},
			"n1, n2, 2 network-node-layer-3 domains"},
		"GKE, in one domain": {[]string{subblock + "=s", subblock + "=s", subblock + "=s"}, "gce-topology-subblock",
			[]string{"s", "s", "s"}, []string{"gce-topology-subblock=s  Tesla-T4"}, "3 nodes, gce-topology-subblock=s"},
		"zones": {[]string{v1.LabelTopologyZone + "=b", v1.LabelTopologyZone + "=a"}, "zone", []string{"a", "b"},
			[]string{"zone=a  Tesla-T4", "zone=b  Tesla-T4"}, "n1, n2, 2 zone domains"},
		"a node without any among racks": {[]string{wellknown.RackLabel + "=r1", ""}, "rack", []string{"", "r1"},
			[]string{"Tesla-T4", "rack=r1  Tesla-T4"}, "n1, n2"},
		"several clouds": {[]string{layer3 + "=nn-1", subblock + "=s", wellknown.RackLabel + "=r1"}, "Domain",
			[]string{"gce-topology-subblock=s", "network-node-layer-3=nn-1", "rack=r1"},
			[]string{"gce-topology-subblock=s  Tesla-T4", "network-node-layer-3=nn-1  Tesla-T4", "rack=r1  Tesla-T4"},
			"3 nodes, 3 domains"},
		"the host name is the node": {[]string{v1.LabelHostname + "=n1"}, "Domain", []string{""}, []string{"Tesla-T4"}, "n1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newStore()
			for i, labels := range tc.nodes {
				n := fmt.Sprint("n", i+1)
				set(b, node(n, "nvidia.com/gpu=8", func(made *v1.Node) {
					delete(made.Labels, wellknown.RackLabel)
					for _, label := range strings.Fields(labels) {
						key, value, _ := strings.Cut(label, "=")
						made.Labels[key] = value
					}
				}))
				set(b, pod("on-"+n, n, "nvidia.com/gpu=1", ownedBy("Job", "j")))
			}
			c := b.Cluster(now)
			var cells, titles []string
			list := NodeRows(c.Nodes)
			at := len(list.Columns) - 2
			for _, r := range list.Rows {
				cells = append(cells, fmt.Sprint(r.Cells[at]))
			}
			for _, g := range Groups(c.Nodes) {
				titles = append(titles, g.Title)
			}
			assert.Equal(t, "heading, cells, titles and the place of a job", []any{tc.heading, tc.cells, tc.titles, tc.where},
				[]any{list.Columns[at].Name, cells, titles, c.Jobs[0].Where()})
		})
	}
}

func TestADomainIsAFieldOfItsOwn(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"r1": `"domain":{"level":"topology.kubernetes.io/rack","value":"r1"}`,
		"":   `"name":"n1","model":"Tesla-T4","state"`,
	} {
		c := newStore(node("n1", "nvidia.com/gpu=8", func(n *v1.Node) { n.Labels[wellknown.RackLabel] = value })).Cluster(now)
		data, err := json.Marshal(c)
		require.NoError(t, err)
		assert.Contains(t, string(data), want)
	}
}
