package explain

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/screen/tables"
)

// Cost explains a plugin's raw score. Less is better.
type Cost struct {
	// Unit of the amounts.
	Unit  string  `json:"unit"`
	Total float64 `json:"total"`
	// Terms are those that are not zero.
	Terms []process.Term `json:"terms"`
}

// notableShare is the part of the largest difference from which on a difference is named as a reason.
const notableShare = 0.05

// leastAmount is the smallest amount that a raw score distinguishes from zero.
const leastAmount = 1e-6

// addCosts adds the cost to each score of a plugin that can explain it.
func (w *world) addCosts(
	ctx context.Context, nodes []Node, state fwk.CycleState, pod *v1.Pod, feasible []fwk.NodeInfo,
) error {
	infos := make(map[string]fwk.NodeInfo, len(feasible))
	for _, info := range feasible {
		infos[info.Node().Name] = info
	}
	// EnqueueExtensions is the only list of plugin instances that the framework has.
	for _, plugin := range w.fw.EnqueueExtensions() {
		scorer, ok := plugin.(process.Scorer)
		if !ok || state.GetSkipScorePlugins().Has(plugin.Name()) {
			continue
		}
		for i := range nodes {
			at := slices.IndexFunc(nodes[i].Scores, func(s Score) bool { return s.Plugin == plugin.Name() })
			if at < 0 {
				continue
			}
			cost, err := scorer.Terms(ctx, state, pod, infos[nodes[i].Name])
			if err != nil {
				return fmt.Errorf("asking %s for the terms of node %s: %w", plugin.Name(), nodes[i].Name, err)
			}
			nodes[i].Scores[at].Cost = costOf(cost)
		}
	}
	return nil
}

// costOf is the cost without terms that are zero; nil without any terms.
func costOf(c process.Cost) *Cost {
	if len(c.Terms) == 0 {
		return nil
	}
	cost := &Cost{Unit: c.Unit, Terms: []process.Term{}}
	for _, t := range c.Terms {
		cost.Total += t.Amount
		if math.Abs(t.Amount) >= leastAmount/2 {
			cost.Terms = append(cost.Terms, t)
		}
	}
	return cost
}

// amount of the term of that name, 0 if there is none.
func (c *Cost) amount(name string) float64 {
	for _, t := range c.Terms {
		if t.Name == name {
			return t.Amount
		}
	}
	return 0
}

// String is the terms and their sum.
func (c *Cost) String() string {
	if c == nil {
		return ""
	}
	var b strings.Builder
	for _, t := range c.Terms {
		fmt.Fprintf(&b, "%s %s ", t.Name, amount(t.Amount))
	}
	return b.String() + "= " + amount(c.Total)
}

// amount has four significant digits, or fewer where more would be below a millionth.
func amount(x float64) string {
	if math.Abs(x) < leastAmount/2 {
		return "0"
	}
	decimals := min(max(3-int(math.Floor(math.Log10(math.Abs(x)))), 0), 6)
	shown := strconv.FormatFloat(x, 'f', decimals, 64)
	if decimals > 0 {
		shown = strings.TrimRight(strings.TrimRight(shown, "0"), ".")
	}
	return shown
}

// merge returns the names of the terms of all costs.
func merge(costs []*Cost) []string {
	var names []string
	for _, c := range costs {
		for _, t := range c.Terms {
			if !slices.Contains(names, t.Name) {
				names = append(names, t.Name)
			}
		}
	}
	return names
}

// costs prints a row for each node and a column for each term, the largest first; nothing if no node has a cost. Nodes
// with the same terms share a row, unless every node has its own row.
func (p *page) costs(rows [][]Node, plugin int, winner string) {
	var costs []*Cost
	var names []string
	like := map[string]int{}
	var others []int
	for _, row := range rows {
		c := row[0].Scores[plugin].Cost
		if c == nil {
			continue
		}
		key := c.String()
		if i, known := like[key]; known && p.top > 0 {
			others[i] += len(row)
			continue
		}
		like[key] = len(costs)
		costs, names, others = append(costs, c), append(names, row[0].Name), append(others, len(row)-1)
	}
	found := merge(costs)
	if len(found) == 0 {
		return
	}
	largest := map[string]float64{}
	for _, name := range found {
		for _, c := range costs {
			largest[name] = max(largest[name], math.Abs(c.amount(name)))
		}
	}
	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(largest[b], largest[a]) })
	columns := []tables.Column{{Name: "sum", Number: true}}
	for i, name := range found {
		columns = append(columns, tables.Column{Name: name, Number: true, Extra: i > 0})
	}
	p.line("\n%s in %s, less is better:", rows[0][0].Scores[plugin].Plugin, costs[0].Unit)
	p.perNode(names, others, winner, columns, func(row int) []any {
		cells := []any{amount(costs[row].Total)}
		for _, name := range found {
			cell := ""
			if x := costs[row].amount(name); x != 0 {
				cell = amount(x)
			}
			cells = append(cells, cell)
		}
		return cells
	})
}

// why names the terms in which the costs of the runner-up and the winner differ; it is empty if one of them has no
// cost. It leaves out small differences.
func why(node string, winner, second *Cost) string {
	if winner == nil || second == nil {
		return ""
	}
	type step struct {
		reason string
		more   float64
	}
	var steps []step
	largest := 0.0
	for _, t := range slices.Concat(second.Terms, winner.Terms) {
		more := second.amount(t.Name) - winner.amount(t.Name)
		known := slices.ContainsFunc(steps, func(s step) bool { return s.reason == t.For })
		if math.Abs(more) >= leastAmount/2 && !known {
			steps = append(steps, step{reason: t.For, more: more})
			largest = max(largest, math.Abs(more))
		}
	}
	if len(steps) == 0 {
		return ""
	}
	total := second.Total - winner.Total
	// The terms that contribute to the total come first, those with the opposite sign last.
	slices.SortStableFunc(steps, func(a, b step) int {
		return cmp.Compare(math.Copysign(1, total)*b.more, math.Copysign(1, total)*a.more)
	})
	var parts []string
	for _, s := range steps {
		if math.Abs(s.more) >= notableShare*largest {
			parts = append(parts, moreOrLess(s.more, "")+" for "+s.reason)
		}
	}
	return fmt.Sprintf("on %s the pod costs %s: %s", node, moreOrLess(total, second.Unit), strings.Join(parts, ", "))
}

// moreOrLess is an amount with its direction, and with the unit if one is given: 350 milli-GPU more.
func moreOrLess(x float64, unit string) string {
	direction := "more"
	if x < 0 {
		direction = "less"
	}
	if unit != "" {
		direction = unit + " " + direction
	}
	return amount(math.Abs(x)) + " " + direction
}
