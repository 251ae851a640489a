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

// GPUs says a number of milli-GPU in GPUs: 2, 0.5, 0.125.
func GPUs(milli int64) string {
	return strconv.FormatFloat(float64(milli)/gpu.WholeMilli, 'f', -1, 64)
}

// Roughly says it to a tenth.
func Roughly(milli int64) string {
	const tenth = gpu.WholeMilli / 10
	return GPUs((milli + tenth/2) / tenth * tenth)
}

// Dollars says a price in dollars and cents.
func Dollars(p price.MicroDollars) string { return fmt.Sprintf("$%.2f", p.Dollars()) }

// Lines say the totals in sentences of a few words each: the GPUs, the bill, what waits.
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

// percent says a part of a whole, and nothing of nothing.
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

// Why says why it waits, as far as anything has been said.
func (w *Waiting) Why() string {
	reason := cmp.Or(w.brief(), "not tried yet")
	if w.Nominated != "" {
		return "room is being made on " + w.Nominated + "; " + reason
	}
	return reason
}

// ofAll is how the scheduler begins to say why no node fits, and preemptionOfAll how it goes on where no eviction would
// help.
var (
	ofAll           = regexp.MustCompile(`^0/[0-9]+ nodes are available: `)
	preemptionOfAll = regexp.MustCompile(`\.? preemption: 0/[0-9]+ nodes are available: .*$`)
)

// brief is the reason without what the entry says already.
func (w *Waiting) brief() string {
	if w.Gang {
		return ofGang(w.Reason, w.Namespace, w.Name)
	}
	return brief(w.Reason)
}

// ofGang is what is said of a gang without its name.
func ofGang(reason, namespace, name string) string {
	return strings.TrimPrefix(reason, "gang "+namespace+"/"+name+" ")
}

// Brief is the message without what the scheduler says of every pod that fits no node.
func (w *Warning) Brief() string { return brief(w.Message) }

// brief is what the scheduler says without what it says of every pod that fits no node.
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

// Lacks says what the gang waits for, what is reserved for it, and which deadline it misses.
func (g *Gang) Lacks() string {
	return joined(ofGang(g.Reason, g.Namespace, g.Name), g.Reserved, g.Late)
}

func joined(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), "; ")
}

// Group is the nodes of the map that stand together.
type Group struct {
	// Title is the domain and the model, as far as they are known.
	Title string
	Nodes []Node
	// AllocatedMilliGPU of as many GPUs.
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

// LevelOf is the name of the level of the network at which the nodes are shown, empty if that is not one for all.
func LevelOf(nodes []Node) string {
	domains := make([]podview.Domain, len(nodes))
	for i := range nodes {
		domains[i] = nodes[i].Domain
	}
	return podview.CommonLevel(domains)
}

// Words say how full the group is.
func (g *Group) Words() string {
	return fmt.Sprintf("%s of %s in %s", Roughly(g.AllocatedMilliGPU), plural.Of(g.GPUs, "GPU"),
		plural.Of(len(g.Nodes), "node"))
}
