package explain

import (
	"cmp"
	"fmt"
	"slices"
)

// RunnerUp compares the best node with the next one that has fewer points.
type RunnerUp struct {
	Node string `json:"node"`
	// Margin is the difference in points.
	Margin int64 `json:"margin"`
	// Differences are the plugins that score the two nodes differently, the greatest difference first.
	Differences []Difference `json:"differences"`
	// Changes are single changes of a weight with which it would win, the smallest first. They are exact: the scores of
	// plugins do not depend on weights.
	Changes []WeightChange `json:"changes"`
}

// Difference is how one plugin scores the two nodes.
type Difference struct {
	Plugin   string `json:"plugin"`
	Weight   int64  `json:"weight"`
	Winner   int64  `json:"winner"`
	RunnerUp int64  `json:"runnerUp"`
	// Points is the difference of the weighted scores.
	Points int64 `json:"points"`
	// Why names the terms in which the costs of the nodes differ, if the plugin has terms.
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

// mostFold bounds suggested weights to a multiple of the current one that is practical.
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

// changeToWin finds the nearest weight with which a node wins that is margin points behind and to which the plugin
// gives gain points more before the weight (fewer, if negative). Weight 0 means that the plugin is disabled.
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
