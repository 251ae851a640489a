package demo

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/screen/svg"
)

// Sizes of the map, in pixels.
const (
	mapWidth                     = 960.0
	cellSize, cellGap            = 12.0, 2.0
	nodeGap, lineGap             = 10.0, 12.0
	labelHeight, namesHeight     = 22.0, 14.0
	nameWidth                    = 4.3 // of a letter, about
	legendHeight, legendItem     = 30.0, 175.0
	gpuRows                      = 2 // the GPUs of a node are drawn in this many rows
	cpuMark                      = 5.0
	freeColor, brimColor, inkHex = "#eceff1", "#b0bec5", "#263238"
)

// filling is what of one GPU a workload has, in thousandths.
type filling struct {
	workload, milli int
}

// Map draws the cluster as an SVG file: every GPU of every node, in the color of the workload that has it. Parts of a
// shared GPU are filled from below; a dot marks each pod without GPUs.
func (o *Outcome) Map() string {
	names := o.workloads()
	var body strings.Builder
	y := legendHeight
	for _, model := range o.models() {
		fmt.Fprintf(&body, `<text class="model" x="0" y="%g">%s</text>`, y+14, html.EscapeString(model))
		y += labelHeight
		x := 0.0
		for _, node := range o.nodesOf(model) {
			width := max(nodeWidth(node), nameWidth*float64(len(node.Name)))
			if x+width > mapWidth {
				x, y = 0, y+nodeHeight()+lineGap
			}
			o.drawNode(&body, node, names, x, y)
			x += width + nodeGap
		}
		y += nodeHeight() + lineGap
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 -4 %g %g" role="img" aria-labelledby="title">`+
		`<title id="title">GPUs of the demonstration by workload</title><style>text{font:11px sans-serif;fill:%s}`+
		`.model{font-weight:bold;font-size:12px}.node{font-size:8px}</style><rect x="-8" y="-4" width="100%%" height="100%%" fill="#fff"/>`,
		mapWidth+16, y+8, inkHex)
	for i, name := range names {
		fmt.Fprintf(&b, `<rect x="%g" y="0" width="%g" height="%g" fill="%s"/><text x="%g" y="10">%s</text>`,
			float64(i)*legendItem, cellSize, cellSize, workloadColor(i), float64(i)*legendItem+cellSize+5,
			html.EscapeString(name))
	}
	b.WriteString(body.String())
	b.WriteString("</svg>\n")
	return b.String()
}

// workloadColor skips the first color of the plots, black, which would look like a fault on a map.
func workloadColor(i int) string { return svg.Color(i + 1) }

// workloads are the names of those that were placed.
func (o *Outcome) workloads() []string {
	seen := map[string]bool{}
	for _, p := range o.Placements {
		seen[p.Workload] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// models are those of the nodes, the one with most GPUs in a node first.
func (o *Outcome) models() []string {
	gpus := map[string]int{}
	for _, node := range o.Nodes {
		gpus[node.Model] = max(gpus[node.Model], node.GPUs)
	}
	return slices.SortedFunc(maps.Keys(gpus), func(a, b string) int {
		return cmp.Or(cmp.Compare(gpus[b], gpus[a]), cmp.Compare(a, b))
	})
}

// nodesOf are the nodes of a model, by the group of their name and then by number: a-2 before a-10.
func (o *Outcome) nodesOf(model string) []*Node {
	var list []*Node
	for _, node := range o.Nodes {
		if node.Model == model {
			list = append(list, node)
		}
	}
	group := func(n *Node) string { return n.Name[:strings.LastIndex(n.Name, "-")+1] }
	slices.SortFunc(list, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(group(a), group(b)), cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func nodeWidth(node *Node) float64 {
	columns := max(2, (node.GPUs+gpuRows-1)/gpuRows)
	return float64(columns)*(cellSize+cellGap) + cellGap
}

func nodeHeight() float64 { return gpuRows*(cellSize+cellGap) + cellGap + namesHeight }

func (o *Outcome) drawNode(b *strings.Builder, node *Node, names []string, x, y float64) {
	height := nodeHeight() - namesHeight
	fmt.Fprintf(b,
		`<g><title>%s: %d of %d thousandths of GPUs taken, %v per hour</title><rect x="%g" y="%g" width="%g" height="%g" rx="2" fill="none" stroke="%s"/>`,
		html.EscapeString(node.Name), node.Milli, node.GPUs*gpu.WholeMilli, node.Price, x, y, nodeWidth(node), height,
		brimColor)
	gpus, dots := o.fillings(node, names)
	for i, parts := range gpus {
		cx := x + cellGap + float64(i/gpuRows)*(cellSize+cellGap)
		cy := y + cellGap + float64(i%gpuRows)*(cellSize+cellGap)
		fmt.Fprintf(b, `<rect x="%g" y="%g" width="%g" height="%g" fill="%s"/>`, cx, cy, cellSize, cellSize, freeColor)
		bottom := cy + cellSize
		for _, part := range parts {
			size := cellSize * float64(part.milli) / gpu.WholeMilli
			bottom -= size
			fmt.Fprintf(b, `<rect x="%g" y="%.2f" width="%g" height="%.2f" fill="%s"/>`, cx, bottom, cellSize, size,
				workloadColor(part.workload))
		}
	}
	for i, w := range dots {
		fmt.Fprintf(b, `<circle cx="%g" cy="%g" r="%g" fill="%s"/>`, x+cpuMark+float64(i)*(cpuMark*2), y, cpuMark-1,
			workloadColor(w))
	}
	fmt.Fprintf(b, `<text class="node" x="%g" y="%g">%s</text></g>`, x, y+height+namesHeight-4,
		html.EscapeString(node.Name))
}

// fillings are what workloads have of each GPU of a node, and the workloads of its pods without GPUs. Whole GPUs have
// no index, so they are drawn in order.
func (o *Outcome) fillings(node *Node, names []string) (gpus [][]filling, without []int) {
	gpus = make([][]filling, node.GPUs)
	next := 0
	for _, p := range o.Placements {
		if p.Node != node.Name {
			continue
		}
		workload := slices.Index(names, p.Workload)
		if p.GPUs == 0 {
			without = append(without, workload)
		}
		for i := range p.GPUs {
			index := next
			if i < len(p.Devices) {
				index = p.Devices[i]
			} else {
				next++
			}
			if index < len(gpus) {
				gpus[index] = append(gpus[index], filling{workload, p.Milli})
			}
		}
	}
	return gpus, without
}
