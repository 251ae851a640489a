// Package showback divides a bill over those for whom it was run up: GPU time and money by a key such as the namespace.
// It is exact: amounts are whole milli-GPU·seconds and micro-dollars, each line is rounded so that the lines of a day
// add up to the day, and the days to the whole.
package showback

import "time"

// Statement says who had GPUs and what they cost.
type Statement struct {
	// Source is where the figures are from: replay or prometheus.
	Source string `json:"source"`
	Input  string `json:"input"`
	// By is the key of the lines: namespace, gang or label=KEY.
	By   string    `json:"by"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`

	// Nodes and NodesWithoutPrice are 0 where the source does not know nodes.
	Nodes             int `json:"nodes"`
	NodesWithoutPrice int `json:"nodesWithoutPrice"`
	// UnpricedMilliGPUSeconds is the part of the total on nodes without a price.
	UnpricedMilliGPUSeconds int64 `json:"unpricedMilliGPUSeconds"`

	// Lines are what the keys had, the dearest first.
	Lines []Line `json:"lines"`
	// Idle is the part of nodes in use that no pod requested, and Empty the nodes that ran only pods of their own.
	Idle  Amount `json:"idle"`
	Empty Amount `json:"emptyNodes"`
	// Total is the sum of all lines, of Idle and of Empty.
	Total Amount `json:"total"`

	// Days are the same for each day, in UTC; the first and the last may be parts of one. They add up to the figures
	// above.
	Days []Day `json:"days"`
	// Measured says whether use was measured.
	Measured bool     `json:"measured"`
	Notes    []string `json:"notes"`
}

// Line is what one key had.
type Line struct {
	Key             string `json:"key"`
	MilliGPUSeconds int64  `json:"milliGPUSeconds"`
	MicroDollars    int64  `json:"microDollars"`
	// UsedMilliGPUSeconds is how much of its GPU time they were busy; nil where it was not measured.
	UsedMilliGPUSeconds *int64 `json:"usedMilliGPUSeconds,omitempty"`
}

// Amount is GPU time and money.
type Amount struct {
	MilliGPUSeconds int64 `json:"milliGPUSeconds"`
	MicroDollars    int64 `json:"microDollars"`
}

// Day is one day, or the part of it that the statement is about.
type Day struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Lines []Line    `json:"lines"`
	Idle  Amount    `json:"idle"`
	Empty Amount    `json:"emptyNodes"`
	Total Amount    `json:"total"`
}

func (a *Amount) add(b Amount) {
	a.MilliGPUSeconds += b.MilliGPUSeconds
	a.MicroDollars += b.MicroDollars
}
