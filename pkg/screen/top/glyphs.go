package top

import (
	"strings"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/screen/tables"
)

// eighths are the glyphs of partly used GPUs. Only the color shows that the rest of one is stranded.
var eighths = []rune("▁▂▃▄▅▆▇")

// Legend explains the glyphs of the map.
const Legend = "█ allocated  ▁▂▃▄▅▆▇ partly used  · free  × stranded  ! unavailable"

// glyph of a GPU.
func glyph(g overview.GPU) string {
	switch {
	case g.State == overview.Unavailable:
		return "!"
	case g.State == overview.Allocated:
		return "█"
	case g.UsedMilliGPU > 0:
		return string(eighths[min(len(eighths)-1, g.UsedMilliGPU*len(eighths)/gpu.WholeMilli)])
	case g.State == overview.Stranded:
		return "×"
	}
	return "·"
}

// colors of the states. Allocated and partly used GPUs have none.
var colors = map[overview.GPUState]tables.Color{
	overview.Free: tables.Green, overview.Stranded: tables.Yellow, overview.Unavailable: tables.Red,
}

// glyphs of the GPUs of a node. Neighbors of the same state are painted together.
func glyphs(screen tables.Screen, list []overview.GPU) string {
	var b strings.Builder
	for i := 0; i < len(list); {
		run, state := "", list[i].State
		for ; i < len(list) && list[i].State == state; i++ {
			run += glyph(list[i])
		}
		if color, ok := colors[state]; ok {
			run = screen.Paint(color, run)
		}
		b.WriteString(run)
	}
	return b.String()
}

// mapRow is a line of the map: the title of a group, or some of its nodes.
type mapRow struct {
	title string
	nodes []overview.Node
}

// mapRows divides the nodes into lines of a width. All nodes of a group are as wide as the one with the most GPUs.
func mapRows(nodes []overview.Node, width int) []mapRow {
	var rows []mapRow
	for _, g := range overview.Groups(nodes) {
		rows = append(rows, mapRow{title: g.Title + "  " + g.Words()})
		perLine := max(1, width/(cellWidth(g.Nodes)+1))
		for start := 0; start < len(g.Nodes); start += perLine {
			rows = append(rows, mapRow{nodes: g.Nodes[start:min(start+perLine, len(g.Nodes))]})
		}
	}
	return rows
}

func cellWidth(nodes []overview.Node) int {
	widest := 1
	for i := range nodes {
		widest = max(widest, len(nodes[i].GPUs))
	}
	return widest
}
