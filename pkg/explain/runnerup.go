package explain

import (
	"cmp"
	"fmt"
	"slices"
)

// RunnerUp compares the second best node with the best.
type RunnerUp struct {
	Node string `json:"node"`
	// Margin is by how many points it is behind.
	Margin int64 `json:"margin"`
	// Differences are the plugins that do not give both nodes the same, the greatest difference first.
	Differences []Difference `json:"differences"`
	// Changes are single changes of a weight by which it would win, the smallest first. They are exact: a weight changes
	// no plugin's score.
	Changes []WeightChange `json:"changes"`
}

// Difference is one plugin's view of the two nodes.
type Difference struct {
	Plugin   string `json:"plugin"`
	Weight   int64  `json:"weight"`
	Winner   int64  `json:"winner"`
	RunnerUp int64  `json:"runnerUp"`
	// Points are what it gives the winner more than the runner-up.
	Points int64 `json:"points"`
	// Why says by which terms the runner-up costs more or less than the winner, where the plugin has terms.
	Why string `json:"why,omitempty"`
}

// WeightChange is a new weight of a plugin.
type WeightChange struct {
	Plugin string `json:"plugin"`
	From   int64  `json:"from"`
	To     int64  `json:"to"`
}

// String says the change in words.
func (c WeightChange) String() string {
	switch {
	case c.To > c.From:
		return fmt.Sprintf("%s with weight %d or more instead of %d", c.Plugin, c.To, c.From)
	case c.To == 0:
		return fmt.Sprintf("%s disabled", c.Plugin)
	default:
		return fmt.Sprintf("%s with weight %d or less instead of %d", c.Plugin, c.To, c.From)
	}
}

// mostFold bounds the weights that are suggested: no one follows the advice to make one thirty times what it is.
const mostFold = 3

// findRunnerUp compares the first of the scored nodes with the first that has fewer points.
func (e *Explanation) findRunnerUp() {
	if next := slices.IndexFunc(e.Nodes, func(n Node) bool { return n.Total < e.Nodes[0].Total }); next > 0 {
		e.RunnerUp = compare(&e.Nodes[0], &e.Nodes[next])
		e.Margin = e.RunnerUp.Margin
	}
}

// compare says what separates the winner from the runner-up.
func compare(winner, second *Node) *RunnerUp {
	r := &RunnerUp{Node: second.Name, Margin: winner.Total - second.Total}
	for _, ws := range winner.Scores {
		i := slices.IndexFunc(second.Scores, func(s Score) bool { return s.Plugin == ws.Plugin })
		if i < 0 || second.Scores[i].Normalised == ws.Normalised {
			continue
		}
		ss := second.Scores[i]
		r.Differences = append(r.Differences, Difference{
			Plugin: ws.Plugin, Weight: ws.Weight, Winner: ws.Normalised, RunnerUp: ss.Normalised,
			Points: ws.Weighted - ss.Weighted,
			Why:    why(second.Name, ws.Cost, ss.Cost),
		})
		if change, ok := changeToWin(ws.Plugin, ws.Weight, ss.Normalised-ws.Normalised, r.Margin); ok {
			r.Changes = append(r.Changes, change)
		}
	}
	slices.SortStableFunc(r.Differences, func(a, b Difference) int { return cmp.Compare(abs(b.Points), abs(a.Points)) })
	slices.SortStableFunc(r.Changes,
		func(a, b WeightChange) int { return cmp.Compare(abs(a.To-a.From), abs(b.To-b.From)) })
	return r
}

// changeToWin finds the nearest weight with which a node wins that a plugin gives gain points more (less, if negative)
// before the weight counts, and that is margin points behind. Disabling the plugin counts as weight 0.
func changeToWin(plugin string, weight, gain, margin int64) (WeightChange, bool) {
	step := margin/abs(gain) + 1
	to := weight + step
	if gain < 0 {
		to = weight - step
	}
	return WeightChange{Plugin: plugin, From: weight, To: to}, to >= 0 && to <= mostFold*weight &&
		(to*mostFold >= weight || to == 0 && weight <= mostFold)
}

func abs(x int64) int64 { return max(x, -x) }
