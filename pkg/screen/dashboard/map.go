package dashboard

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"html/template"
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/gpu"
)

const (
	// square is the width of a GPU on the map, with its margin.
	square = 5
	// mostSquares is up to how many GPUs the map draws each GPU. On larger maps a node is one cell.
	mostSquares = 20_000
	// mostColors is how many workloads, those with the most GPUs, have a color of their own.
	mostColors = 8
	// noColor is the class of all others.
	noColor = "other"
)

// group is a domain or a model on the map.
type group struct {
	// Label is the title without the level of the domain and the maker of the GPUs, for narrow pages. Text says how many
	// GPUs are allocated, Short the same as numbers.
	Title, Label, Text, Short string
	Nodes                     []onMap
}

type onMap struct {
	Name, Text string
	Link       template.URL
	SVG        template.HTML
}

// colored is a workload in the legend.
type colored struct{ Class, Name, Text string }

// palette has the color classes of workloads. Others have noColor.
type palette map[string]string

// newPalette colors the workloads with the most GPUs, and returns the legend. The color depends on the name, so that
// workloads usually keep their colors.
func newPalette(nodes []overview.Node) (palette, []colored) {
	sums := map[string]int64{}
	for i := range nodes {
		for _, u := range nodes[i].Use {
			sums[u.Workload] += u.MilliGPU
		}
	}
	names := slices.SortedFunc(maps.Keys(sums), func(x, y string) int {
		return cmp.Or(cmp.Compare(sums[y], sums[x]), cmp.Compare(x, y))
	})
	colors, legend := palette{}, []colored{}
	var taken [mostColors]bool
	for _, name := range names[:min(len(names), mostColors)] {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(name)) // it never fails
		color := int(hash.Sum32() % mostColors)
		for taken[color] {
			color = (color + 1) % mostColors
		}
		taken[color] = true
		colors[name] = fmt.Sprint("w", color)
		legend = append(legend, colored{colors[name], name, overview.GPUs(sums[name]) + " GPUs"})
	}
	if rest := len(names) - len(legend); rest > 0 {
		var sum int64
		for _, name := range names[len(legend):] {
			sum += sums[name]
		}
		legend = append(legend, colored{noColor, fmt.Sprint(rest, " others"), overview.GPUs(sum) + " GPUs"})
	}
	return colors, legend
}

// part is a part of a GPU in thousandths, with its color class.
type part struct {
	class string
	milli int
}

// parts divides the used GPUs of a node among its workloads. The sums are right, but for whole GPUs it is unknown which
// workload has which GPU.
func (p palette) parts(n *overview.Node) [][]part {
	var left []part
	for _, u := range n.Use {
		left = append(left, part{cmp.Or(p[u.Workload], noColor), int(u.MilliGPU)})
	}
	made := make([][]part, len(n.GPUs))
	for i, g := range n.GPUs {
		for used := g.UsedMilliGPU; used > 0; {
			if len(left) == 0 {
				left = []part{{noColor, used}} // of unknown pods
			}
			take := min(used, left[0].milli)
			made[i] = append(made[i], part{left[0].class, take})
			used -= take
			if left[0].milli -= take; left[0].milli <= 0 {
				left = left[1:]
			}
		}
	}
	return made
}

// squares draws the GPUs of a node, more than four of them in two rows. The used part is filled. Without colors, the
// outline of the rest shows its state: free, crossed out for stranded, struck through for unavailable.
func (p palette) squares(n *overview.Node) template.HTML {
	const side = square - 1
	columns, rows := max(1, len(n.GPUs)), 1
	if len(n.GPUs) > 4 {
		columns, rows = (len(n.GPUs)+1)/2, 2
	}
	shapes := map[string]*strings.Builder{}
	var classes []string
	draw := func(class, format string, args ...any) {
		if shapes[class] == nil {
			shapes[class] = &strings.Builder{}
			classes = append(classes, class)
		}
		fmt.Fprintf(shapes[class], format, args...)
	}
	filled := p.parts(n)
	for i, g := range n.GPUs {
		x, y := i%columns*square, i/columns*square
		below := 0
		for _, f := range filled[i] {
			from, to := side*below/gpu.WholeMilli, side*(below+f.milli)/gpu.WholeMilli
			below += f.milli
			if to > from {
				draw(f.class, "M%d %dh%dv-%dh-%dz", x, y+side-from, side, to-from, side)
			}
		}
		switch g.State {
		case overview.Free, overview.Partial:
			draw("free", "M%d.5 %d.5h%dv%dh-%dz", x, y, side-1, side-1, side-1)
		case overview.Stranded:
			draw("stranded", "M%d.5 %d.5h%dv%dh-%dzl%d %dm0 -%dl-%d %d", x, y, side-1, side-1, side-1, side-1, side-1, side-1,
				side-1, side-1)
		case overview.Unavailable:
			draw("unavailable", "M%d.5 %d.5h%dv%dh-%dzm0 %dl%d -%d", x, y, side-1, side-1, side-1, side-1, side-1, side-1)
		}
	}
	slices.Sort(classes)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="gpus" viewBox="0 0 %d %d" width="%d" height="%d" aria-hidden="true">`, square*columns,
		square*rows, square*columns, square*rows)
	for _, class := range classes {
		fmt.Fprintf(&b, `<path class="%s" d="%s"/>`, class, shapes[class])
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // there are only numbers and names of classes in it
}

// describe is a node in words, for screen readers.
func describe(n *overview.Node) string {
	words := fmt.Sprintf("%s, %s: %s of %d GPUs allocated, %s stranded", n.Name, n.State,
		overview.GPUs(n.AllocatedMilliGPU), len(n.GPUs), overview.Roughly(n.StrandedMilliGPU))
	const most = 3
	for i, u := range n.Use[:min(len(n.Use), most)] {
		if i == 0 {
			words += "; "
		} else {
			words += ", "
		}
		words += u.Workload + " " + overview.GPUs(u.MilliGPU)
	}
	return words
}

// labelOf shortens the title of a group.
func labelOf(g *overview.Group) string {
	return strings.Replace(strings.TrimPrefix(g.Title, overview.LevelOf(g.Nodes)+"="), "NVIDIA-", "", 1)
}

// groups is the map. With each set it draws every GPU, else a node is one cell, filled by its allocation.
func groups(nodes []overview.Node, each bool, colors palette) []group {
	var list []group
	for _, g := range overview.Groups(nodes) {
		made := group{Title: g.Title, Label: labelOf(&g), Text: g.Words(),
			Short: fmt.Sprintf("%s/%d", overview.Roughly(g.AllocatedMilliGPU), g.GPUs)}
		for i := range g.Nodes {
			n := &g.Nodes[i]
			drawn := n
			if !each {
				mean := int(n.AllocatedMilliGPU) / max(1, len(n.GPUs))
				drawn = &overview.Node{GPUs: []overview.GPU{{State: overview.Free, UsedMilliGPU: mean}},
					Use: []overview.Use{{MilliGPU: int64(mean)}}}
				if len(n.Use) > 0 {
					drawn.Use[0].Workload = n.Use[0].Workload
				}
			}
			made.Nodes = append(made.Nodes,
				onMap{Name: n.Name, Text: describe(n), Link: nodeLink(n.Name), SVG: colors.squares(drawn)})
		}
		list = append(list, made)
	}
	return list
}
