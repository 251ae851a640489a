package dashboard

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/overview"
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
	if diff := cmp.Diff(want, parts, cmp.AllowUnexported(part{})); diff != "" {
		t.Errorf("parts of the GPUs (-want +got):\n%s", diff)
	}
	// What no workload is known to have is shown all the same.
	node.Use = nil
	if diff := cmp.Diff([][]part{{{noColor, 1000}}, {{noColor, 500}}, nil}, colors.parts(&node),
		cmp.AllowUnexported(part{})); diff != "" {
		t.Errorf("parts of unknown users (-want +got):\n%s", diff)
	}
}

func TestOnlyGroupsOfTheMapThatChangedAreSent(t *testing.T) {
	t.Parallel()
	c := cluster()
	s := New(Source{Plan: nothingPlanned, Cluster: func() *overview.Cluster { return c }})
	now := func() *rendered {
		s.latest = nil
		r, err := render(s.view(url.Values{}, everything))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	sent := func(page *shown) string { return strings.Join(slices.Sorted(maps.Keys(page.changed(now()))), " ") }
	fresh := &shown{parts: map[string]string{}}
	if got := sent(fresh); !strings.Contains(got, " map ") || strings.Contains(got, "map-") {
		t.Errorf("a page that shows nothing is sent %q, want the whole map", got)
	}
	current := &shown{parts: map[string]string{}}
	for i, digest := range strings.Split(digests(now()), ",") {
		current.parts[parts[i]] = digest
	}
	if got := sent(current); got != "" {
		t.Errorf("a page that was just made is sent %q", got)
	}
	c = cluster()
	c.Nodes[1].AllocatedMilliGPU = 2000
	for _, page := range []*shown{fresh, current} {
		if got := sent(page); got != "map-1 nodes" {
			t.Errorf("after a change of the second rack, %q is sent", got)
		}
	}
	c = cluster()
	c.Nodes[1].Rack = "r3"
	if got := sent(fresh); got != "map nodes" {
		t.Errorf("after a change of the racks, %q is sent", got)
	}
}

func TestALargeClusterIsDrawnByNodes(t *testing.T) {
	t.Parallel()
	c := cluster()
	for range 3000 {
		c.Nodes = append(c.Nodes, c.Nodes[0])
	}
	c.Totals.GPUs = mostSquares + 1
	s := New(Source{Plan: nothingPlanned, Cluster: func() *overview.Cluster { return c }})
	v := s.view(url.Values{}, everything)
	if v.Nodes.More != len(c.Nodes)-mostRows || strings.Contains(string(v.Groups[0].Nodes[0].SVG), "stranded") {
		t.Errorf("%d rows are left out; the first node is drawn as %s", v.Nodes.More, v.Groups[0].Nodes[0].SVG)
	}
}
