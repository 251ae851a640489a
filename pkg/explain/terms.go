package explain

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/terms"
)

// Cost is what a plugin's raw score stands for. Less is better.
type Cost struct {
	// Unit of the amounts.
	Unit  string  `json:"unit"`
	Total float64 `json:"total"`
	// Terms are those that are not zero.
	Terms []terms.Term `json:"terms"`
}

// tellingShare is the part of the largest difference that a difference needs to be named as a reason.
const tellingShare = 0.05

// leastAmount is the least amount that a raw score can tell from zero.
const leastAmount = 1e-6

// addCosts adds to each score what it is the sum of, where the plugin can say so.
func (w *world) addCosts(
	ctx context.Context, nodes []Node, state fwk.CycleState, pod *v1.Pod, feasible []fwk.NodeInfo,
) error {
	infos := make(map[string]fwk.NodeInfo, len(feasible))
	for _, info := range feasible {
		infos[info.Node().Name] = info
	}
	// The framework lists no instances but those that wait for events.
	for _, plugin := range w.fw.EnqueueExtensions() {
		scorer, ok := plugin.(terms.Scorer)
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

// costOf leaves out the terms that are zero; nil if there is no cost at all.
func costOf(c terms.Cost) *Cost {
	if len(c.Terms) == 0 {
		return nil
	}
	cost := &Cost{Unit: c.Unit, Terms: []terms.Term{}}
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

// merge returns the terms of all costs, in the order in which a plugin names them.
func merge(costs []*Cost) []string {
	var names []string
	for _, c := range costs {
		at := 0
		for _, t := range c.Terms {
			if i := slices.Index(names, t.Name); i >= 0 {
				at = i + 1
				continue
			}
			names = slices.Insert(names, at, t.Name)
			at++
		}
	}
	return names
}

// costTable has a row for each of the nodes and a column for each term that one of them has; it is empty if no node has a
// cost. Nodes with the same terms share a row, unless every node is to stand by itself.
func costTable(rows [][]Node, plugin int, apart bool, width int) string {
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
		if i, known := like[key]; known && !apart {
			others[i] += len(row)
			continue
		}
		like[key] = len(costs)
		costs, names, others = append(costs, c), append(names, row[0].Name), append(others, len(row)-1)
	}
	columns := merge(costs)
	if len(columns) == 0 {
		return ""
	}
	labels := make([]string, len(names))
	for i, name := range names {
		labels[i] = likeIt(name, others[i])
	}
	largest := func(name string) float64 {
		most := 0.0
		for _, c := range costs {
			most = max(most, math.Abs(c.amount(name)))
		}
		return most
	}
	body := termsTable(labels, costs, columns, false)
	for len(columns) > 1 && tooWide(body, width) {
		// What counts least goes into the sum alone.
		least := 0
		for i := range columns {
			if largest(columns[i]) < largest(columns[least]) {
				least = i
			}
		}
		columns = slices.Delete(slices.Clone(columns), least, least+1)
		body = termsTable(labels, costs, columns, true)
	}
	return fmt.Sprintf("%s in %s, less is better:\n%s\n", rows[0][0].Scores[plugin].Plugin, costs[0].Unit, body)
}

// termsTable has a row for each cost and a column for each of the terms, with a column for the rest if rest is set.
func termsTable(labels []string, costs []*Cost, columns []string, rest bool) string {
	t := newTable()
	header := table.Row{"node"}
	for _, name := range columns {
		header = append(header, name)
	}
	if rest {
		header = append(header, "rest")
	}
	header = append(header, "sum")
	var right []table.ColumnConfig
	for i := range len(header) - 1 {
		right = append(right, table.ColumnConfig{Number: i + 2, Align: text.AlignRight})
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(right)
	for i, c := range costs {
		row := table.Row{labels[i]}
		left := c.Total
		for _, name := range columns {
			cell := ""
			if x := c.amount(name); x != 0 {
				cell = amount(x)
				left -= x
			}
			row = append(row, cell)
		}
		if rest {
			row = append(row, amount(left))
		}
		t.AppendRow(append(row, amount(c.Total)))
	}
	return t.Render()
}

// likeIt names a node and counts those that are like it.
func likeIt(name string, others int) string {
	if others == 0 {
		return name
	}
	return fmt.Sprintf("%s and %d like it", name, others)
}

// why says in words by which terms the runner-up costs more than the winner, or less; it is empty where one of them has no
// cost. Small differences are left to the table.
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
	// First what explains the total, last what works against it.
	slices.SortStableFunc(steps, func(a, b step) int {
		return cmp.Compare(math.Copysign(1, total)*b.more, math.Copysign(1, total)*a.more)
	})
	var said []string
	for _, s := range steps {
		if math.Abs(s.more) >= tellingShare*largest {
			said = append(said, moreOrLess(s.more, "")+" for "+s.reason)
		}
	}
	return fmt.Sprintf("on %s the pod costs %s: %s", node, moreOrLess(total, second.Unit), strings.Join(said, ", "))
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
