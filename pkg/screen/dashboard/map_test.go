package dashboard

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/test/harness/assert"
)

func TestWorkloadsKeepTheirColors(t *testing.T) {
	t.Parallel()
	node := overview.Node{Name: "n", GPUs: []overview.GPU{{State: overview.Allocated, UsedMilliGPU: 1000},
		{State: overview.Partial, UsedMilliGPU: 500}, {State: overview.Free}}}
	for i := range mostColors + 2 {
		node.Use = append(node.Use, overview.Use{Workload: fmt.Sprint("team/w", i), MilliGPU: int64(1000 - i)})
	}
	colors, legend := newPalette([]overview.Node{node})
	if len(colors) != mostColors || len(legend) != mostColors+1 || legend[mostColors].Name != "2 others" {
		t.Errorf("%d colors, legend %+v", len(colors), legend)
	}
	seen := map[string]string{}
	for workload, class := range colors {
		if other := seen[class]; other != "" {
			t.Errorf("%s and %s have one color", workload, other)
		}
		seen[class] = workload
	}
	parts := colors.parts(&node)
	want := [][]part{{{colors["team/w0"], 1000}}, {{colors["team/w1"], 500}}, nil}
	assert.Equal(t, "parts of the GPUs", want, parts, cmp.AllowUnexported(part{}))
	// What no workload is known to have is shown all the same.
	node.Use = nil
	assert.Equal(t, "parts of unknown users", [][]part{{{noColor, 1000}}, {{noColor, 500}}, nil}, colors.parts(&node),
		cmp.AllowUnexported(part{}))
}

func TestALargeClusterIsDrawnByNodes(t *testing.T) {
	t.Parallel()
	c := cluster()
	for range 3000 {
		c.Nodes = append(c.Nodes, c.Nodes[0])
	}
	c.Totals.GPUs = mostSquares + 1
	s := New(overview.Source{Cluster: func() *overview.Cluster { return c }})
	v := s.view(url.Values{})
	if v.Nodes.More != len(c.Nodes)-mostRows || strings.Contains(string(v.Groups[0].Nodes[0].SVG), "stranded") {
		t.Errorf("%d rows are left out; the first node is drawn as %s", v.Nodes.More, v.Groups[0].Nodes[0].SVG)
	}
}

func TestTheHeadingOfTheMapIsTrueOfEachNode(t *testing.T) {
	t.Parallel()
	rackOf, zoneOf := rack("1"), podview.Domain{Level: "a/zone", Value: "1"}
	for name, tc := range map[string]struct {
		domains        [2]podview.Domain
		heading, label string
	}{
		"one level":  {[2]podview.Domain{zoneOf, zoneOf}, "GPUs by zone and model", "<span>1  T4</span>"},
		"two levels": {[2]podview.Domain{rackOf, zoneOf}, "GPUs by domain and model", "<span>1  T4</span>"},
		"none":       {[2]podview.Domain{}, "GPUs by domain and model", "<span>T4</span>"},
	} {
		c := cluster()
		c.Nodes[0].Domain, c.Nodes[1].Domain = tc.domains[0], tc.domains[1]
		server := New(overview.Source{Cluster: func() *overview.Cluster { return c }})
		parts, err := redrawn(map[string]string{}, server.view(url.Values{}))
		if err != nil || !strings.Contains(parts["legend"], tc.heading) || !strings.Contains(parts["map"], tc.label) {
			t.Errorf("%s: no %q or no %q (%v) in %s%s", name, tc.heading, tc.label, err, parts["legend"], parts["map"])
		}
	}
}
