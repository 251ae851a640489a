package explain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/plural"
)

// inFavor says why a plugin without a cost gives a node more points than another.
var inFavor = map[string]string{
	names.ImageLocality:                   "has more of the images that the pod needs",
	names.InterPodAffinity:                "is where the pod's affinity to other pods wants it",
	names.NodeAffinity:                    "is what the pod's node affinity prefers",
	names.PodTopologySpread:               "spreads the pods more evenly",
	names.TaintToleration:                 "has fewer taints that the pod would rather avoid",
	names.NodeResourcesBalancedAllocation: "leaves CPU and memory in better balance",
	names.NodeResourcesFit:                "suits the scoring strategy for CPU and memory better",
	"SLAAware":                            "comes closer to the pod's objectives",
	"NetworkTopology":                     "is nearer to the pods that it talks to",
	"PlacementPolicy":                     "is nearer to the data that it reads",
}

// sentence is the explanation in one sentence. For a bound pod it begins with its node.
func (e *Explanation) sentence() string {
	if e.BoundTo == "" || e.BoundTo == e.Winner && e.Gang == nil {
		return e.today()
	}
	text := "It runs on " + e.BoundTo + "."
	if e.Gang != nil {
		text = fmt.Sprintf("It runs on %s, as one of %s of its gang.", e.BoundTo, plural.Of(e.Gang.Bound, "bound member"))
	}
	scored := e.scored()
	at := slices.IndexFunc(e.Nodes, func(n Node) bool { return n.Name == e.BoundTo })
	switch {
	case e.Gang != nil && e.Gang.Missing != "":
		return text + " Today it would wait: " + e.Gang.Missing + "."
	case at < 0:
		return fmt.Sprintf("It is bound to %s, which does not exist any more. Today: %s", e.BoundTo, e.today())
	case e.BoundTo == e.Winner:
		return text
	case len(scored) == 0:
		return text + " Today it would not be placed there. " + e.whatIsLacking()
	case at >= len(scored):
		r := e.Nodes[at].Rejected
		return fmt.Sprintf("%s Today %s would reject that node (%s), and %s would be chosen.", text, r.Plugin,
			strings.Join(r.Reasons, ", "), e.Winner)
	case e.Gang != nil || scored[at].Total == scored[0].Total:
		return fmt.Sprintf("%s Today %s would do as well.", text, e.Winner)
	}
	better := compare(&scored[0], &scored[at])
	_, because, _ := strings.Cut(contrast(&scored[0], &scored[at], better.Differences, 1), ": ")
	return fmt.Sprintf("%s Today the scheduler would choose %s, because %s", text, e.Winner, because)
}

// today says which node the scheduler would choose now, or why none.
func (e *Explanation) today() string {
	scored := e.scored()
	switch {
	case e.Gang != nil && e.Gang.Missing != "":
		if what, waits := strings.CutPrefix(e.Gang.Missing, "waiting "); waits {
			return "It waits " + what + e.Gang.help() + "."
		}
		if e.Preemption.evicts() {
			return fmt.Sprintf("It waits: %s; evicting %s makes room.", e.Gang.Missing, listed(e.Preemption.Victims))
		}
		return "It waits: " + e.Gang.Missing + e.Gang.help() + "."
	case e.BoundTo == "" && e.Gang.node(e.Pod.Name) != "" && e.Gang.Bound > 0:
		return fmt.Sprintf("Its gang has started: %s bound, and the plan gives this one %s.",
			plural.Of(e.Gang.Bound, "other member")+" "+plural.Choose(e.Gang.Bound, "is", "are"), e.Gang.node(e.Pod.Name))
	case e.Gang.node(e.Pod.Name) != "":
		return fmt.Sprintf("Its gang starts as a whole: %s %s on %s, this one on %s.",
			plural.Of(len(e.Gang.Assignments), "member"),
			plural.Choose(len(e.Gang.Assignments), "fits", "fit"), e.Gang.where(), e.Gang.node(e.Pod.Name))
	case len(e.PreEnqueue) > 0 && !e.Gang.follows():
		return "It is not tried yet: " + strings.Join(e.PreEnqueue[0].Reasons, ", ") + "."
	case len(scored) == 0:
		return e.whatIsLacking()
	case len(scored) == 1:
		if len(e.Nodes) == 1 {
			return fmt.Sprintf("%s wins: it is the only node.", e.Winner)
		}
		return fmt.Sprintf("%s wins: no other node fits; of the other %d, %s.", e.Winner, len(e.Nodes)-1,
			rejections(e.Nodes[1:]))
	}
	first := &scored[0]
	if e.RunnerUp == nil {
		return fmt.Sprintf("%s wins by chance: the %s that fit are equally good.", first.Name,
			plural.Of(len(scored), "node"))
	}
	at := slices.IndexFunc(scored, func(n Node) bool { return n.Name == e.RunnerUp.Node })
	return contrast(first, &scored[at], e.RunnerUp.Differences, at)
}

// mostReasons is how many plugins a sentence names.
const mostReasons = 3

// contrast names the advantages of the first node over the second, of the plugins that contribute most to the margin.
func contrast(first, second *Node, differences []Difference, tied int) string {
	var good, bad []string
	for _, d := range differences {
		if len(good) == mostReasons || d.Points <= 0 || d.Points*10 < differences[0].Points {
			continue
		}
		a, b := costOn(first, d.Plugin), costOn(second, d.Plugin)
		if a == nil || b == nil {
			if words, known := inFavor[d.Plugin]; known {
				good = append(good, words)
			} else {
				good = append(good, fmt.Sprintf("gets %s more from %s", points(d.Points), d.Plugin))
			}
			continue
		}
		good, bad = append(good, absolute(a)), append(bad, relative(a, b))
	}
	like := ""
	if tied > 1 {
		like = fmt.Sprintf(" (%s %s as good)", plural.Of(tied-1, "other node"), plural.Choose(tied-1, "is", "are"))
	}
	text := fmt.Sprintf("%s wins%s: ", first.Name, like)
	if len(good) == 0 {
		return text + "many small differences add up."
	}
	text += "it " + listed(good)
	if len(bad) > 0 {
		text += fmt.Sprintf("; %s would %s", second.Name, listed(bad))
	}
	if against := strongestAgainst(differences); against != "" {
		text += ", though " + against + " prefers " + second.Name
	}
	return text + "."
}

// strongestAgainst is the plugin that favors the second node most, if its difference matters.
func strongestAgainst(differences []Difference) string {
	for _, d := range differences {
		if d.Points < 0 && -d.Points*4 >= differences[0].Points {
			return d.Plugin
		}
	}
	return ""
}

func costOn(n *Node, plugin string) *Cost {
	for i := range n.Scores {
		if n.Scores[i].Plugin == plugin {
			return n.Scores[i].Cost
		}
	}
	return nil
}

// The units of costs with wordings of their own.
const (
	milliGPU = "milli-GPU"
	dollars  = "dollars an hour"
)

// absolute says what a node costs, after "it".
func absolute(c *Cost) string {
	switch {
	case c.Unit == milliGPU && math.Abs(c.Total) < leastGPU:
		return "wastes no GPU"
	case c.Unit == milliGPU:
		return "wastes " + gpus(c.Total)
	case c.Unit == dollars && c.Total < 0.005:
		return "adds nothing to the bill"
	case c.Unit == dollars:
		return "costs " + money(c.Total)
	default:
		return "costs " + amount(c.Total) + " " + c.Unit
	}
}

// relative says how much more the second node costs, after "would", with the main reason.
func relative(first, second *Cost) string {
	more := second.Total - first.Total
	reason := ""
	most := 0.0
	for _, t := range second.Terms {
		if d := t.Amount - first.amount(t.Name); t.For != "" && d > most {
			most, reason = d, " (mostly for "+t.For+")"
		}
	}
	if most < more/2 {
		reason = ""
	}
	switch second.Unit {
	case milliGPU:
		return "waste " + gpus(more) + " more" + reason
	case dollars:
		return "cost " + strings.Replace(money(more), " per", " more per", 1) + reason
	default:
		return "cost " + amount(more) + " " + second.Unit + " more" + reason
	}
}

// leastGPU is the smallest part of a GPU that is mentioned, in thousandths.
const leastGPU = 10

// gpus writes a number of GPUs that is given in thousandths.
func gpus(milli float64) string {
	if math.Abs(milli) < leastGPU {
		return "less than 0.01 GPUs"
	}
	n := math.Round(milli/leastGPU) / (1000 / leastGPU)
	if n == 1 {
		return "1 GPU"
	}
	return amount(n) + " GPUs"
}

func money(x float64) string {
	if x > 0 && x < 0.01 {
		return "less than a cent per hour"
	}
	return fmt.Sprintf("$%.2f per hour", x)
}

// listed joins parts as in a sentence: a, b and c.
func listed(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// whatIsLacking says why no node fits and what would help.
func (e *Explanation) whatIsLacking() string {
	text := fmt.Sprintf("No node fits: of %s, %s", plural.Of(len(e.Nodes), "node"), rejections(e.Nodes))
	if p := e.Preemption; p != nil && p.Node != "" {
		return fmt.Sprintf("%s; evicting %s makes room on %s.", text, listed(p.Victims), p.Node)
	}
	if len(e.Nodes) > 0 && len(e.hopeless) == len(e.Nodes) {
		text = fmt.Sprintf("No node could take it, even if it was empty: of %s, %s", plural.Of(len(e.Nodes), "node"),
			rejections(e.hopeless))
	}
	if len(e.Closest) > 0 {
		c := e.Closest[0]
		if c.Largest == "0" {
			text += "; no node has " + c.Resource
			if c.Like != "" {
				return text + ". Did you mean " + c.Like + "?"
			}
			return text + "."
		}
		if c.Largest != "" {
			return fmt.Sprintf("%s; no node has %s %s in all, the largest has %s.", text, c.Needs, c.Resource, c.Largest)
		}
		return fmt.Sprintf("%s; %s comes closest and would need %s %s free instead of %s.", text, c.Node, c.Needs, c.Resource,
			c.Free)
	}
	if e.selector != "" {
		text += "; " + e.selector
	}
	return text + "."
}

// mostRejections is how many reasons a sentence names.
const mostRejections = 2

// rejections counts nodes by why they are rejected, the most frequent reason first.
func rejections(nodes []Node) string {
	count := map[string]int{}
	for _, n := range nodes {
		if n.Rejected != nil {
			count[inWords(n.Rejected)]++
		}
	}
	return counted(count)
}

// counted lists reasons with their numbers of nodes, the most frequent first.
func counted(count map[string]int) string {
	whys := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	var parts []string
	others := 0
	for i, why := range whys {
		// One more reason is as short as "1 for other reasons".
		if i >= mostRejections && len(whys) > mostRejections+1 {
			others += count[why]
			continue
		}
		parts = append(parts, fmt.Sprintf("%d %s", count[why], why))
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("%d for other reasons", others))
	}
	return listed(parts)
}

// inWords says why a node is rejected and by which plugin, for use after a number of nodes.
func inWords(r *Rejection) string {
	parts := make([]string, len(r.Reasons))
	for i, reason := range r.Reasons {
		words, ofNodes := strings.CutPrefix(reason, "node(s) ")
		resource, short := strings.CutPrefix(words, "Insufficient ")
		switch {
		case short:
			words = "with too little " + resource + " free"
		case !ofNodes:
			words = "because of: " + words
		}
		parts[i] = words
	}
	text := strings.Join(parts, ", ")
	if inner, ok := strings.CutSuffix(text, ")"); ok && !strings.HasSuffix(text, "(s)") {
		return inner + "; " + r.Plugin + ")"
	}
	return text + " (" + r.Plugin + ")"
}

// help says what would let the gang start if it has too few members.
func (g *Gang) help() string {
	if missing := g.MinMember - g.Bound - g.Pending; g.MinMember > 0 && missing > 0 {
		if g.Gated >= missing {
			return fmt.Sprintf("; removing the scheduling gates of %s would help", plural.Of(missing, "pod"))
		}
		return fmt.Sprintf("; it is planned when %d more %s", missing, plural.Choose(missing, "pod exists", "pods exist"))
	}
	return ""
}

// where is the number of nodes of the plan.
func (g *Gang) where() string {
	nodes := map[string]bool{}
	for _, a := range g.Assignments {
		nodes[a.Node] = true
	}
	return plural.Of(len(nodes), "node")
}
