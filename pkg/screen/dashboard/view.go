package dashboard

import (
	"cmp"
	_ "embed" // for the templates
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/screen/tables"
)

//go:embed page.html
var pageSource string

var templates = template.Must(template.New("").Funcs(template.FuncMap{"class": classOf, "link": linkOf, "text": textOf,
	"drawing": drawingOf}).Parse(pageSource))

// parts are the parts of a page that are updated: the names of their templates, and their ids in the page.
var parts = []string{"totals", "jobs", "gangs", "queue", "legend", "map", "plots", "namespaces", "nodes", "warnings"}

// mostRows bounds the rows of a table.
const mostRows = 200

// view is the data of the page of the cluster.
type view struct {
	Cluster, Time string
	Filter        string
	// Query is the filter as part of an address.
	Query   template.URL
	Totals  []tile
	LeftOut []string
	Plots   []plot
	Legend  []colored
	// Level is the level of the domains on the map, if it is the same for all nodes.
	Level  string
	Groups []group
	Jobs, Queue, Gangs, Namespaces,
	Nodes, Warnings table
}

// tile is one figure of the totals.
type tile struct{ Name, Value, More string }

// table is a list and the number of entries that it leaves out.
type table struct {
	Title string
	// Class is "text-last" if the last column has sentences. None is the text for an empty list.
	Class, None string
	overview.List
	// Naming is the column that names the rows: the first without numbers.
	Naming, More int
}

func (s *Server) view(query url.Values) *view {
	c := s.cluster()
	v := &view{Cluster: s.source.Name, Time: c.Taken.Format(time.TimeOnly), Filter: strings.TrimSpace(query.Get("filter")),
		LeftOut: c.LeftOut, Plots: s.plots()}
	v.Totals = totals(&c.Totals)
	nodes := slices.Clone(c.Nodes)
	if v.Filter != "" {
		nodes = slices.DeleteFunc(nodes, func(n overview.Node) bool {
			return !matches(v.Filter, n.Name, n.Model, n.Domain.String(), n.Zone, string(n.State), string(n.Sharing))
		})
	}
	colors, legend := newPalette(c.Nodes)
	v.Legend = legend
	v.Level = cmp.Or(overview.LevelOf(nodes), "domain")
	v.Groups = groups(nodes, c.Totals.GPUs <= mostSquares, colors)
	v.Query = template.URL(url.Values{"filter": {v.Filter}}.Encode()) //nolint:gosec // it is encoded
	none := func(what string) string {
		if v.Filter != "" {
			what += " for this filter"
		}
		return what + "."
	}
	v.Jobs = tableOf("Workloads", sentences, none("No workloads"), overview.JobRows(c.Jobs), v.Filter)
	v.Queue = tableOf("Queue", sentences, none("Nothing waits"), overview.QueueRows(c.Queue), v.Filter)
	v.Gangs = tableOf("Gangs", sentences, none("No gangs"), overview.GangRows(c.Gangs), v.Filter)
	v.Namespaces = tableOf("Namespaces", "", none("No namespaces with pods"), c.NamespaceRows(), v.Filter)
	v.Nodes = tableOf("Nodes", "", none("No nodes"), overview.NodeRows(nodes), "")
	v.Warnings = tableOf("Warnings", sentences, none("No warnings"), c.WarningRows(), v.Filter)
	return v
}

// sentences is the class of tables whose last column has some.
const sentences = "text-last"

func matches(filter string, texts ...string) bool {
	return strings.Contains(strings.ToLower(strings.Join(texts, " ")), strings.ToLower(filter))
}

// tableOf is a table of the entries that match the filter.
func tableOf(title, class, none string, list overview.List, filter string) table {
	t := table{Title: title, Class: class, None: none, List: overview.List{Columns: list.Columns},
		Naming: slices.IndexFunc(list.Columns, func(c tables.Column) bool { return !c.Number })}
	for _, row := range list.Rows {
		words := make([]string, len(row.Cells))
		for i := range row.Cells {
			words[i] = textOf(row.Cells[i])
		}
		switch {
		case filter != "" && !matches(filter, words...):
		case len(t.Rows) == mostRows:
			t.More++
		default:
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// textOf is a cell as text, empty for a drawing of GPUs.
func textOf(cell any) string {
	if _, node := cell.(*overview.Node); node {
		return ""
	}
	return fmt.Sprint(cell)
}

// drawingOf is a cell that is a drawing of GPUs, empty for a text.
func drawingOf(cell any) template.HTML {
	if node, ok := cell.(*overview.Node); ok {
		return palette{}.squares(node)
	}
	return ""
}

// classOf are the CSS classes of a column: whether it has text, and whether a narrow page leaves it out.
func classOf(c tables.Column) string {
	var classes []string
	if !c.Number {
		classes = append(classes, "words")
	}
	if c.Extra {
		classes = append(classes, "extra")
	}
	return strings.Join(classes, " ")
}

// linkOf is the link of a row, empty without one.
func linkOf(r overview.Row) template.URL {
	switch r.Kind {
	case "", overview.QueueKind:
		return ""
	case overview.NodeKind, overview.NamespaceKind:
		return pageLink(r.Kind, "name", r.Name)
	}
	return explainLink(r.Kind, r.Namespace, r.Name)
}

// strandedWords explains the stranded GPUs.
func strandedWords(t *overview.Totals) string {
	if t.StrandedMilliGPU == 0 {
		return "all usable by the requests in the cluster"
	}
	return fmt.Sprintf("%.1f stranded: no request of the pods here fits there (× on the map)", asGPUs(t.StrandedMilliGPU))
}

func totals(t *overview.Totals) []tile {
	price, idle := "unknown", "no node has a known price"
	if t.NodesWithoutPrice < t.Nodes {
		price, idle = overview.Dollars(t.MicroDollarsPerHour), overview.Dollars(t.IdleMicroDollarsPerHour)+" of it idle"
		if t.NodesWithoutPrice > 0 {
			idle += fmt.Sprintf(", %s without a price", plural.Of(t.NodesWithoutPrice, "node"))
		}
	}
	share := "no GPUs"
	if t.GPUs > 0 {
		share = fmt.Sprintf("%.0f%% of %d", float64(t.AllocatedMilliGPU)/float64(t.GPUs)/gpu.WholeMilli*100, t.GPUs)
	}
	return []tile{
		{"GPUs allocated", fmt.Sprintf("%.1f", asGPUs(t.AllocatedMilliGPU)), share},
		{"GPUs idle", fmt.Sprintf("%.1f", asGPUs(t.IdleMilliGPU)), strandedWords(t)},
		{"GPUs unavailable", fmt.Sprint(t.UnavailableGPUs), "faulty, or on unschedulable nodes"},
		{"Nodes in use", fmt.Sprint(t.NodesInUse), fmt.Sprintf("of %d, %d with GPUs", t.Nodes, t.NodesWithGPUs)},
		{"Cost an hour", price, idle},
		{"Pods pending", fmt.Sprint(t.PendingPods),
			fmt.Sprintf("%d gated, %s", t.GatedPods, plural.Of(t.PendingGangs, "gang"))},
	}
}

// pageLink is the address of a page with parameters, each name followed by its value.
func pageLink(page string, parameters ...string) template.URL {
	query := url.Values{}
	for i := 0; i+1 < len(parameters); i += 2 {
		query.Set(parameters[i], parameters[i+1])
	}
	return template.URL(page + "?" + query.Encode()) //nolint:gosec // it is encoded
}

func explainLink(kind, namespace, name string) template.URL {
	return pageLink("explain", "kind", kind, "namespace", namespace, "name", name)
}

func nodeLink(name string) template.URL { return pageLink("node", "name", name) }
