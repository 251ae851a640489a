package overview

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
)

// GPUs writes thousandths of a GPU as a number of GPUs: 2, 0.5, 0.125.
func GPUs(milli int64) string {
	return strconv.FormatFloat(float64(milli)/gpu.WholeMilli, 'f', -1, 64)
}

// Roughly is GPUs rounded to a tenth.
func Roughly(milli int64) string {
	const tenth = gpu.WholeMilli / 10
	return GPUs((milli + tenth/2) / tenth * tenth)
}

// Dollars writes a price in dollars and cents.
func Dollars(p price.MicroDollars) string { return fmt.Sprintf("$%.2f", p.Dollars()) }

// Lines are the totals in short sentences: GPUs, nodes with their cost, pending pods.
func (c *Cluster) Lines() []string {
	t := &c.Totals
	lines := []string{fmt.Sprintf("%s of %s allocated (%s), %s idle (%s stranded), %d unavailable",
		Roughly(t.AllocatedMilliGPU), plural.Of(t.GPUs, "GPU"), percent(t.AllocatedMilliGPU, int64(t.GPUs)*gpu.WholeMilli),
		Roughly(t.IdleMilliGPU), Roughly(t.StrandedMilliGPU), t.UnavailableGPUs)}
	nodes := fmt.Sprintf("%s, %d with GPUs, %d in use", plural.Of(t.Nodes, "node"), t.NodesWithGPUs, t.NodesInUse)
	if t.NodesWithoutPrice == t.Nodes {
		nodes += "; no node has a known price"
	} else {
		nodes += fmt.Sprintf("; %s an hour, %s of it idle", Dollars(t.MicroDollarsPerHour),
			Dollars(t.IdleMicroDollarsPerHour))
		if t.NodesWithoutPrice > 0 {
			nodes += fmt.Sprintf(" (%s without a price)", plural.Of(t.NodesWithoutPrice, "node"))
		}
	}
	waiting := plural.Of(t.PendingPods, "pod") + " pending"
	if t.GatedPods > 0 {
		waiting += fmt.Sprintf(", %d of them gated", t.GatedPods)
	}
	return append(lines, nodes, fmt.Sprintf("%s; %s pending", waiting, plural.Of(t.PendingGangs, "gang")))
}

// percent is a part of a whole, 0% if the whole is 0.
func percent(part, whole int64) string {
	if whole == 0 {
		return "0%"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(part)/float64(whole))
}

// Title is the name with its namespace, and whether it is a gang.
func (w *Waiting) Title() string {
	if w.Gang {
		return w.Namespace + "/" + w.Name + " (gang)"
	}
	return w.Namespace + "/" + w.Name
}

// Why is the reason for waiting.
func (w *Waiting) Why() string {
	reason := cmp.Or(w.brief(), "not tried yet")
	if w.Nominated != "" {
		return "pods are being evicted from " + w.Nominated + "; " + reason
	}
	return reason
}

// ofAll matches the beginning of the scheduler's message when no node fits, and preemptionOfAll its continuation when
// preemption does not help.
var (
	ofAll           = regexp.MustCompile(`^0/[0-9]+ nodes are available: `)
	preemptionOfAll = regexp.MustCompile(`\.? preemption: 0/[0-9]+ nodes are available: .*$`)
)

// brief is the reason without what the entry shows already.
func (w *Waiting) brief() string {
	if w.Gang {
		return ofGang(w.Reason, w.Namespace, w.Name)
	}
	return brief(w.Reason)
}

// ofGang is a message about a gang without its name.
func ofGang(reason, namespace, name string) string {
	return strings.TrimPrefix(reason, "gang "+namespace+"/"+name+" ")
}

// Brief is the message without the text that is the same for every pod that fits no node.
func (w *Warning) Brief() string { return brief(w.Message) }

// brief is the scheduler's message without the text that is the same for every pod that fits no node.
func brief(reason string) string {
	return strings.TrimSuffix(preemptionOfAll.ReplaceAllString(ofAll.ReplaceAllString(reason, ""), ""), ".")
}

// Title is the object with its namespace.
func (w *Warning) Title() string {
	if w.Namespace == "" {
		return w.Object
	}
	return w.Namespace + "/" + w.Object
}

// Lacks joins the reason why the gang waits, what is reserved for it, and a deadline that it misses.
func (g *Gang) Lacks() string {
	return joined(ofGang(g.Reason, g.Namespace, g.Name), g.Reserved, g.Late)
}

func joined(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), "; ")
}

// Group are the nodes of a domain and a model on the map.
type Group struct {
	// Title is the domain and the model, as far as they are known.
	Title string
	Nodes []Node
	// AllocatedMilliGPU is the allocated part of the GPUs.
	AllocatedMilliGPU int64
	GPUs              int
}

// Groups divides nodes that are in the order of a Cluster by domain and model.
func Groups(nodes []Node) []Group {
	var groups []Group
	for i := range nodes {
		n := &nodes[i]
		title := cmp.Or(n.Model, "unknown model")
		if n.Domain.Level != "" {
			title = n.Domain.String() + "  " + title
		}
		if len(groups) == 0 || groups[len(groups)-1].Title != title {
			groups = append(groups, Group{Title: title})
		}
		g := &groups[len(groups)-1]
		g.Nodes = append(g.Nodes, *n)
		g.AllocatedMilliGPU += n.AllocatedMilliGPU
		g.GPUs += len(n.GPUs)
	}
	return groups
}

// LevelOf is the network level of the nodes' domains, empty if it is not the same for all.
func LevelOf(nodes []Node) string {
	domains := make([]podview.Domain, len(nodes))
	for i := range nodes {
		domains[i] = nodes[i].Domain
	}
	return podview.CommonLevel(domains)
}

// Words says how many GPUs of the group are allocated.
func (g *Group) Words() string {
	return fmt.Sprintf("%s of %s in %s", Roughly(g.AllocatedMilliGPU), plural.Of(g.GPUs, "GPU"),
		plural.Of(len(g.Nodes), "node"))
}
