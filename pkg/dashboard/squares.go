package dashboard

import (
	"fmt"
	"html/template"
	"strings"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/overview"
)

// squares draws the GPUs of a node. What is in use is filled from below; the rest tells by its outline what it is, so that colors
// are not needed: free, crossed out for stranded, struck through for unavailable.
func squares(n *overview.Node) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="gpus" viewBox="0 0 %d %d" width="%d" height="%d" aria-hidden="true">`, square*len(n.GPUs), square, square*len(n.GPUs), square)
	shapes := map[string]*strings.Builder{}
	draw := func(class, format string, args ...any) {
		if shapes[class] == nil {
			shapes[class] = &strings.Builder{}
		}
		fmt.Fprintf(shapes[class], format, args...)
	}
	const side = square - 2
	for i, g := range n.GPUs {
		x := i*square + 1
		if filled := side * g.UsedMilliGPU / gpu.WholeMilli; filled > 0 {
			draw("used", "M%d %dh%dv-%dh-%dz", x, side+1, side, filled, side)
		}
		switch g.State {
		case overview.Free, overview.Partial:
			draw("free", "M%d 1h%dv%dh-%dz", x, side, side, side)
		case overview.Stranded:
			draw("stranded", "M%d 1h%dv%dh-%dzl%d %dm0 -%dl-%d %d", x, side, side, side, side, side, side, side, side)
		case overview.Unavailable:
			draw("unavailable", "M%d 1h%dv%dh-%dzm0 %dl%d -%d", x, side, side, side, side, side, side)
		}
	}
	for _, class := range []string{"used", "free", "stranded", "unavailable"} {
		if path := shapes[class]; path != nil {
			fmt.Fprintf(&b, `<path class="%s" d="%s"/>`, class, path)
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // there are only numbers in it
}

// said is a node in words, for those who do not see the map.
func said(n *overview.Node) string {
	return fmt.Sprintf("%s, %s: %s of %d GPUs allocated, %s stranded", n.Name, n.State, overview.GPUs(n.AllocatedMilliGPU), len(n.GPUs), overview.Roughly(n.StrandedMilliGPU))
}

// groups is the map. Without a drawing for each GPU, a node is a bar that is filled as far as its GPUs are allocated.
func groups(nodes []overview.Node, each bool) []group {
	var list []group
	for _, g := range overview.Groups(nodes) {
		made := group{Title: g.Title + ": " + g.Words()}
		for i := range g.Nodes {
			n := &g.Nodes[i]
			drawn := squares(n)
			if !each {
				drawn = squares(&overview.Node{GPUs: []overview.GPU{{State: overview.Free, UsedMilliGPU: int(n.AllocatedMilliGPU) / max(1, len(n.GPUs))}}})
			}
			made.Nodes = append(made.Nodes, onMap{Name: n.Name, Said: said(n), Link: nodeLink(n.Name), SVG: drawn})
		}
		list = append(list, made)
	}
	return list
}
