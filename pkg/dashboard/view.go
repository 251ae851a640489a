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

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/overview"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/tables"
)

//go:embed page.html
var pageSource string

var templates = template.Must(template.New("").Parse(pageSource))

// parts are what is kept up to date of a page: the names of their templates, and their ids in it.
var parts = []string{"totals", "jobs", "gangs", "queue", "legend", "map", "plots", "namespaces", "nodes", "warnings"}

// mostRows is how many rows a table has.
const mostRows = 200

// view is what a page shows.
type view struct {
	Cluster, Time string
	Filter, Sort  string
	// Color is by what the map is colored, "state" or empty for workloads.
	Color string
	// Query is filter and order as part of an address.
	Query   template.URL
	Totals  []tile
	LeftOut []string
	Plots   []plot
	Legend  []colored
	Groups  []group
	Jobs, Queue, Gangs, Namespaces,
	Nodes, Warnings rows
}

// tile is one figure of the totals.
type tile struct{ Name, Value, More string }

// rows are those of a table, and how many there are besides.
type rows struct {
	List []row
	More int
}

type row struct {
	Cells []string
	// Link is where the first cell leads, empty for nowhere.
	Link template.URL
	GPUs template.HTML
}

// sorts are the orders of the table of nodes; each has the largest first.
var sorts = map[string]func(x, y *overview.Node) int{
	"allocated": func(x, y *overview.Node) int { return cmp.Compare(y.AllocatedMilliGPU, x.AllocatedMilliGPU) },
	"idle":      func(x, y *overview.Node) int { return cmp.Compare(y.IdleMilliGPU, x.IdleMilliGPU) },
	"stranded":  func(x, y *overview.Node) int { return cmp.Compare(y.StrandedMilliGPU, x.StrandedMilliGPU) },
	"cores":     func(x, y *overview.Node) int { return cmp.Compare(y.FreeCPUMilli, x.FreeCPUMilli) },
	"idle-cost": func(x, y *overview.Node) int {
		return cmp.Compare(y.IdleMicroDollarsPerHour, x.IdleMicroDollarsPerHour)
	},
}

func (s *Server) view(query url.Values) *view {
	c := s.cluster()
	v := &view{Cluster: s.source.Name, Time: c.Taken.Format(time.TimeOnly), Filter: strings.TrimSpace(query.Get("filter")),
		LeftOut: c.LeftOut, Plots: s.plots()}
	if sorts[query.Get("sort")] != nil {
		v.Sort = query.Get("sort")
	}
	if query.Get("color") == "state" {
		v.Color = "state"
	}
	v.Totals = totals(&c.Totals)
	nodes := slices.Clone(c.Nodes)
	if v.Filter != "" {
		nodes = slices.DeleteFunc(nodes, func(n overview.Node) bool {
			return !matches(v.Filter, n.Name, n.Model, n.Rack, n.Zone, string(n.State), string(n.Sharing))
		})
	}
	colors := byState()
	if v.Color == "" {
		colors, v.Legend = newPalette(c.Nodes)
	}
	v.Groups = groups(nodes, c.Totals.GPUs <= mostSquares, colors)
	v.Query = template.URL(url.Values{"filter": {v.Filter}, "sort": {v.Sort},
		"color": {v.Color}}.Encode()) //nolint:gosec // it is encoded
	if sort := sorts[v.Sort]; sort != nil {
		slices.SortStableFunc(nodes, func(x, y overview.Node) int { return sort(&x, &y) })
	}
	v.Nodes = rowsOf(nodes, "", nodeRow)
	v.Jobs = rowsOf(c.Jobs, v.Filter, jobRow)
	v.Namespaces = rowsOf(c.Namespaces, v.Filter, namespaceRow)
	v.Queue = rowsOf(c.Queue, v.Filter, queueRow)
	v.Gangs = rowsOf(c.Gangs, v.Filter, gangRow)
	v.Warnings = rowsOf(c.Warnings, v.Filter, func(w *overview.Warning) row { return warningRow(w, c.Taken) })
	return v
}

func matches(filter string, texts ...string) bool {
	return strings.Contains(strings.ToLower(strings.Join(texts, " ")), strings.ToLower(filter))
}

func rowsOf[T any](list []T, filter string, of func(*T) row) rows {
	r := rows{List: []row{}}
	for i := range list {
		made := of(&list[i])
		switch {
		case filter != "" && !matches(filter, made.Cells...):
		case len(r.List) == mostRows:
			r.More++
		default:
			r.List = append(r.List, made)
		}
	}
	return r
}

// strandedWords say what is stranded, and for what: on an empty cluster a figure alone would be a riddle.
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

func nodeRow(n *overview.Node) row {
	cost, idle := "", ""
	if n.Priced {
		cost, idle = overview.Dollars(n.MicroDollarsPerHour), overview.Dollars(n.IdleMicroDollarsPerHour)
	}
	return row{Link: nodeLink(n.Name), GPUs: byState().squares(n),
		Cells: []string{n.Name, fmt.Sprintf("%s of %d", overview.GPUs(n.AllocatedMilliGPU), len(n.GPUs)),
			overview.Roughly(n.StrandedMilliGPU), fmt.Sprintf("%.1f", float64(n.FreeCPUMilli)/1000), fmt.Sprint(n.Pods), cost,
			idle, n.Model, n.Rack, string(n.State), string(n.Sharing)}}
}

func queueRow(w *overview.Waiting) row {
	position := "–"
	if w.Position > 0 {
		position = fmt.Sprint(w.Position)
	}
	return row{Link: explainLink("pod", w.Namespace, w.Pod),
		Cells: []string{w.Title(), position, fmt.Sprint(w.Pods), overview.GPUs(w.MilliGPU), fmt.Sprint(w.Priority),
			tables.Seconds(w.WaitSeconds), w.Scheduler, w.Why()}}
}

// explained are the kinds of workloads that can be explained, as the command calls them.
var explained = map[string]string{
	"Pod": "pod", "PodGroup": "podgroup", "Job": "job", "Deployment": "deployment", "StatefulSet": "statefulset",
	"ReplicaSet": "replicaset",
}

func jobRow(j *overview.Job) row {
	r := row{Cells: []string{j.Namespace + "/" + j.Name, fmt.Sprintf("%d of %d", j.Scheduled, j.Pods),
		overview.GPUs(j.MilliGPU),
		tables.Seconds(j.AgeSeconds), j.Kind, string(j.State), j.Where(), j.Queue.String(), j.Why()}}
	if kind := explained[j.Kind]; kind != "" && j.Pods > 0 {
		r.Link = explainLink(kind, j.Namespace, j.Name)
	}
	return r
}

func namespaceRow(n *overview.Namespace) row {
	return row{Link: pageLink("namespace", "name", n.Name),
		Cells: []string{n.Name, fmt.Sprint(n.Pods), overview.GPUs(n.MilliGPU),
			fmt.Sprint(n.PendingPods), overview.GPUs(n.PendingMilliGPU), overview.Dollars(n.MicroDollarsPerHour)}}
}

func gangRow(g *overview.Gang) row {
	waiting := ""
	if !g.Started {
		waiting = tables.Seconds(g.WaitSeconds)
	}
	return row{Link: explainLink("podgroup", g.Namespace, g.Name),
		Cells: []string{g.Namespace + "/" + g.Name, fmt.Sprintf("%d of %d", g.Scheduled, g.MinMember),
			fmt.Sprint(g.Members), overview.GPUs(g.MilliGPU), fmt.Sprint(g.Nodes), g.Phase, waiting, g.Lacks()}}
}

func warningRow(w *overview.Warning, now time.Time) row {
	r := row{Cells: []string{w.Title(), tables.Duration(max(0, now.Sub(w.Time)).Truncate(time.Second)),
		fmt.Sprint(w.Count), w.Reason, w.Brief()}}
	if name, ok := strings.CutPrefix(w.Object, "Pod/"); ok {
		r.Link = explainLink("pod", w.Namespace, name)
	}
	return r
}

func podRows(list []overview.PodOn) []row {
	made := make([]row, len(list))
	for i, p := range list {
		devices := ""
		if len(p.Devices) > 0 {
			devices = fmt.Sprint(p.Devices)
		}
		made[i] = row{Link: explainLink("pod", p.Namespace, p.Name),
			Cells: []string{p.Namespace + "/" + p.Name, overview.GPUs(p.MilliGPU), devices, p.Gang, fmt.Sprint(p.Priority),
				tables.Duration(time.Duration(p.AgeHours * float64(time.Hour)))}}
	}
	return made
}
