package report

import (
	"fmt"
	"html"
	"math"
	"sort"
	"strings"

	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/svg"
)

// useSteps is into how many classes of use the map's colours divide the nodes that are in use.
const useSteps = 5

// rack is a group of nodes of the cluster map.
type rack struct {
	name  string
	nodes []replayed.NodeUse
}

// racks groups the nodes with GPUs by rack or, where no node says its rack, by GPU model.
func racks(nodes []replayed.NodeUse) (list []rack, by string) {
	by = "GPU model"
	for _, n := range nodes {
		if n.Rack != "" {
			by = "rack"
		}
	}
	index := map[string]int{}
	for _, n := range nodes {
		if n.GPUs == 0 {
			continue
		}
		name := n.Model
		if by == "rack" {
			name = n.Rack
			if name == "" {
				name = "no rack"
			}
		}
		i, ok := index[name]
		if !ok {
			i = len(list)
			index[name] = i
			list = append(list, rack{name: name})
		}
		list[i].nodes = append(list[i].nodes, n)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	return list, by
}

// step is the class of use of a node: 0 for none, useSteps for full.
func step(n replayed.NodeUse) int {
	if n.AllocatedMilli <= 0 {
		return 0
	}
	return min(useSteps, 1+n.AllocatedMilli*useSteps/(n.GPUs*1000+1))
}

func (r rack) gpus() (total, allocated float64) {
	for _, n := range r.nodes {
		total += float64(n.GPUs)
		allocated += float64(n.AllocatedMilli) / 1000
	}
	return total, allocated
}

// clusterMap draws a square for each node, its area by the number of GPUs where there is room for that.
func clusterMap(id, title string, nodes []replayed.NodeUse) string {
	list, by := racks(nodes)
	total := 0
	for _, r := range list {
		total += len(r.nodes)
	}
	cell := math.Max(4, math.Min(18, math.Sqrt(svg.Width*svg.Width/float64(max(1, total)))))
	perRow := max(1, int(svg.Width/cell))
	var body strings.Builder
	y := 0.0
	for _, r := range list {
		_, allocated := r.gpus()
		fmt.Fprintf(&body, `<text class="rack" x="0" y="%.1f">%s</text>`, y+11, html.EscapeString(r.name))
		have, _ := r.gpus()
		fmt.Fprintf(&body, `<text class="tick" x="%g" y="%.1f" text-anchor="end">%s of %s %s</text>`, svg.Width, y+11,
			number(math.Round(allocated*10)/10), number(have), gpuNoun(have))
		y += 16
		for i, n := range r.nodes {
			fmt.Fprintf(&body,
				`<rect class="u%d" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s: %s of %s%s, %s</title></rect>`,
				step(n), float64(i%perRow)*cell+0.5, y+float64(i/perRow)*cell+0.5, cell-1, cell-1,
				html.EscapeString(n.Name), number(float64(n.AllocatedMilli)/1000), plural.Of(n.GPUs, "GPU"), heldWords(n),
				plural.Of(n.Pods, "pod"))
		}
		y += math.Ceil(float64(len(r.nodes))/float64(perRow))*cell + 8
	}
	var b strings.Builder
	svg.Open(&b, id, title, mapDescription(list, by), y)
	b.WriteString(body.String())
	b.WriteString("</svg>")
	return b.String()
}

// heldWords tell what of a node is held without work.
func heldWords(n replayed.NodeUse) string {
	if n.HeldMilli == 0 {
		return ""
	}
	return fmt.Sprintf(" asked for and %s more held", number(float64(n.HeldMilli)/1000))
}

// mapDescription says in words what the map shows.
func mapDescription(list []rack, by string) string {
	classes := make([]int, useSteps+1)
	nodes := 0
	for _, r := range list {
		for _, n := range r.nodes {
			classes[step(n)]++
			nodes++
		}
	}
	return fmt.Sprintf(
		"Nodes by %s at the moment of the highest allocation: of %s with GPUs %d %s unused and %d more than four "+
			"fifths used.",
		by, plural.Of(nodes, "node"), classes[0], plural.Choose(classes[0], "is", "are"), classes[useSteps])
}
