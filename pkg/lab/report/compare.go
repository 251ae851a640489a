// Package report compares the results of replays with two configurations, and shows results and comparisons: as tables
// for a terminal, as JSON, and as one HTML page that needs no other file.
//
// The commands berth replay and compare call it. It runs no replay.
package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/plural"
)

// Comparison is two configurations on the same input with the same seeds.
type Comparison struct {
	Input string        `json:"input"`
	Mode  replayed.Mode `json:"mode"`
	Seeds []uint64      `json:"seeds"`
	// Verdict is the summary.
	Verdict Verdict `json:"verdict"`
	A       Side    `json:"a"`
	B       Side    `json:"b"`
	Rows    []Row   `json:"metrics"`
	// Pending is the mean number of pending pods by reason.
	Pending []PendingRow `json:"pendingByReason"`
	// Waits are the mean hours that pods waited before they were placed, by reason.
	Waits []PendingRow `json:"waitHoursByReason"`
}

// Side is one configuration and its replay for each seed.
type Side struct {
	Name    string             `json:"configuration"`
	Profile string             `json:"profile"`
	Results []*replayed.Result `json:"results"`
}

// Row is one metric.
type Row struct {
	Key   string `json:"metric"`
	Label string `json:"label"`
	Unit  string `json:"unit"`
	// Better is 1 when more is better, -1 when less is, 0 when neither.
	Better int `json:"better"`
	// Measured says that the metric was measured on this machine and differs from run to run.
	Measured bool `json:"measured,omitempty"`
	A        Stat `json:"a"`
	B        Stat `json:"b"`
	// Difference is B less A, seed by seed.
	Difference Stat `json:"difference"`
	// Percent is the mean difference in percent of A's mean; nil when that is 0.
	Percent *float64 `json:"differencePercent"`
	// BySeed is the difference in percent of A, seed by seed; nil if A is 0 with any seed.
	BySeed *Stat `json:"differencePercentBySeed"`
	// OtherWork says that the sides did not do the same work, so that the values cannot be compared.
	OtherWork bool `json:"otherWork,omitempty"`
	// derived metrics follow from another one. Metrics ofWork look better for a side that leaves work undone.
	derived, ofWork bool
}

// Stat is the mean and the range over the seeds.
type Stat struct {
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}

// PendingRow is one reason why pods are pending, or waited.
type PendingRow struct {
	Reason string  `json:"reason"`
	A      float64 `json:"a"`
	B      float64 `json:"b"`
}

// Notes explain differences between the sides, deviations of the replays, and missing prices.
func (c *Comparison) Notes() []string {
	list := append(c.sides(), c.prices()...)
	a, b := c.A.Results[0].Notes, c.B.Results[0].Notes
	for _, note := range a {
		if slices.Contains(b, note) {
			list = append(list, note)
		} else {
			list = append(list, "A: "+note)
		}
	}
	for _, note := range b {
		if !slices.Contains(a, note) {
			list = append(list, "B: "+note)
		}
	}
	return list
}

// prices are notes on nodes without a price, and on different prices of the sides.
func (c *Comparison) prices() []string {
	a, b := c.A.Results[0], c.B.Results[0]
	if a.NodesUnpriced == b.NodesUnpriced && a.PricesMicroDollars == b.PricesMicroDollars {
		return unpriced(a)
	}
	say := func(r *replayed.Result) string {
		sum := quantity(dollars(r.PricesMicroDollars), "$/h")
		switch r.NodesUnpriced {
		case 0:
			return sum
		case r.Nodes:
			return "no price"
		default:
			return fmt.Sprintf("%s for %d of %d nodes", sum, r.Nodes-r.NodesUnpriced, r.Nodes)
		}
	}
	return []string{fmt.Sprintf(
		"the configurations price the nodes differently (in sum, A %s, B %s), so cost and bill cannot be compared; "+
			"--prices gives both the same rates", say(a), say(b))}
}

// unpriced is a note on nodes without a price, if there are any.
func unpriced(r *replayed.Result) []string {
	switch r.NodesUnpriced {
	case 0:
		return nil
	case r.Nodes:
		return []string{"no node has a price, so costs are unknown; --prices gives rates"}
	default:
		return []string{fmt.Sprintf("%d of the %d nodes %s no price and %s nothing in the cost", r.NodesUnpriced, r.Nodes,
			plural.Choose(r.NodesUnpriced, "has", "have"), plural.Choose(r.NodesUnpriced, "counts", "count"))}
	}
}

// metric is how a row is read from a result.
type metric struct {
	key, label, unit string
	better           int
	measured         bool
	// timeOnly metrics do not exist in arrival order, where nothing waits or ends.
	timeOnly bool
	// derived and ofWork are as in a Row.
	derived, ofWork bool
	// ofEstimates metrics compare estimated starts with actual ones. They look better for a side without estimates.
	ofEstimates bool
	of          func(*replayed.Result) float64
}

var metrics = []metric{
	{key: "allocated", label: "GPUs allocated", unit: "%", better: 1,
		of: func(r *replayed.Result) float64 { return r.AllocatedPercent }},
	{key: "stranded", label: "GPUs stranded", unit: "GPUs", better: -1, ofWork: true,
		of: func(r *replayed.Result) float64 { return gpus(r.StrandedMilli) }},
	{key: "held", label: "GPUs held without work", unit: "GPUs", better: -1, derived: true,
		of: func(r *replayed.Result) float64 { return gpus(r.HeldMilli) }},
	{key: "idle", label: "GPUs idle", unit: "GPUs", better: -1, derived: true,
		of: func(r *replayed.Result) float64 { return gpus(r.IdleMilli) }},
	{key: "cost", label: "Cost of nodes in use", unit: "$/h", better: -1, ofWork: true,
		of: func(r *replayed.Result) float64 { return dollars(r.MicroDollarsPerHour) }},
	{key: "cost-per-gpu", label: "Cost per allocated GPU", unit: "$/h", better: -1, derived: true, ofWork: true,
		of: costPerGPU},
	{key: "bill", label: "Whole bill", unit: "$", better: -1, timeOnly: true, ofWork: true,
		of: func(r *replayed.Result) float64 { return dollars(r.MicroDollars) }},
	{key: "nodes", label: "Nodes in use", unit: "nodes", better: -1, ofWork: true,
		of: func(r *replayed.Result) float64 { return r.NodesInUse }},
	{key: "pending", label: "Pods pending at the end", unit: "pods", better: -1,
		of: func(r *replayed.Result) float64 { return float64(r.Pending) }},
	{key: "incomplete", label: "Pods of incomplete gangs at the end", unit: "pods", better: -1,
		of: func(r *replayed.Result) float64 { return float64(r.Incomplete) }},
	{key: "wait-p50", label: "Pod wait, median", unit: "s", better: -1, timeOnly: true, ofWork: true,
		of: func(r *replayed.Result) float64 { return r.PodWait.P50 }},
	{key: "wait-p95", label: "Pod wait, 95th percentile", unit: "s", better: -1, timeOnly: true, ofWork: true,
		of: func(r *replayed.Result) float64 { return r.PodWait.P95 }},
	{key: "gang-wait-p50", label: "Gang wait, median", unit: "s", better: -1, timeOnly: true, ofWork: true,
		of: func(r *replayed.Result) float64 { return r.GangWait.P50 }},
	{key: "gang-wait-p95", label: "Gang wait, 95th percentile", unit: "s", better: -1, timeOnly: true, ofWork: true,
		of: func(r *replayed.Result) float64 { return r.GangWait.P95 }},
	{key: "gang-wait-max", label: "Gang wait, longest", unit: "s", better: -1, timeOnly: true, ofWork: true,
		of: func(r *replayed.Result) float64 { return r.GangWait.Max }},
	{key: "told-error-p50", label: "Estimated start, median error", unit: "s", better: -1, timeOnly: true, derived: true,
		ofEstimates: true, of: func(r *replayed.Result) float64 { return r.ToldStartError.P50 }},
	{key: "told-error-p95", label: "Estimated start, 95th percentile of errors", unit: "s", better: -1, timeOnly: true,
		derived: true, ofEstimates: true, of: func(r *replayed.Result) float64 { return r.ToldStartError.P95 }},
	{key: "gangs-started", label: "Gangs started", unit: "gangs", better: 1,
		of: func(r *replayed.Result) float64 { return float64(r.GangsStarted) }},
	{key: "completed", label: "Jobs completed", unit: "jobs", better: 1, timeOnly: true,
		of: func(r *replayed.Result) float64 { return float64(r.JobsCompleted) }},
	{key: "completion-p50", label: "Job completion, median", unit: "s", better: -1, timeOnly: true, ofWork: true,
		of: func(r *replayed.Result) float64 { return r.JobCompletion.P50 }},
	{key: "completion-p95", label: "Job completion, 95th percentile", unit: "s", better: -1, timeOnly: true, ofWork: true,
		of: func(r *replayed.Result) float64 { return r.JobCompletion.P95 }},
	{key: "preemptions", label: "Preempted pods", unit: "pods", better: -1,
		of: func(r *replayed.Result) float64 { return float64(r.Preemptions) }},
	{key: "spot", label: "GPUs on spot nodes", unit: "GPUs",
		of: func(r *replayed.Result) float64 { return gpus(r.SpotMilli) }},
	{key: "cpu", label: "Scheduler CPU", unit: "s", better: -1, measured: true,
		of: func(r *replayed.Result) float64 { return r.Timing.CPU }},
	{key: "cpu-per-pod", label: "Scheduler CPU per pod", unit: "ms", better: -1, measured: true, of: cpuPerPod},
}

// placementsKey is the metric that is computed from both sides.
const placementsKey = "placements"

func gpus(milli int64) float64    { return float64(milli) / 1000 }
func dollars(micro int64) float64 { return float64(micro) / 1e6 }

// estimates reports whether a gang has started for which there was an estimate.
func estimates(results []*replayed.Result) bool {
	return slices.ContainsFunc(results, func(r *replayed.Result) bool { return r.ToldStartError.Count > 0 })
}

func costPerGPU(r *replayed.Result) float64 {
	if r.AllocatedMilli == 0 {
		return 0
	}
	return dollars(r.MicroDollarsPerHour) / gpus(r.AllocatedMilli)
}

func cpuPerPod(r *replayed.Result) float64 {
	if r.Pods == 0 {
		return 0
	}
	return 1000 * r.Timing.CPU / float64(r.Pods)
}

// Compare puts the results of two configurations, seed by seed, side by side. Both must be of the same input, mode and
// seeds, at least one.
func Compare(a, b []*replayed.Result) *Comparison {
	c := &Comparison{
		Input: a[0].Input, Mode: a[0].Mode,
		A: Side{Name: a[0].Configuration, Profile: a[0].Profile, Results: a},
		B: Side{Name: b[0].Configuration, Profile: b[0].Profile, Results: b},
	}
	for _, r := range a {
		c.Seeds = append(c.Seeds, r.Seed)
	}
	c.Pending = reasonRows(a, b, func(r *replayed.Result, add func(string, float64)) {
		for _, reason := range r.PendingByReason {
			add(reason.Reason, float64(reason.Pods))
		}
	})
	for _, m := range ordered(a[0]) {
		r := row(m, values(a, m.of), values(b, m.of))
		if m.ofEstimates && (!estimates(a) || !estimates(b)) {
			r.Better = 0
		}
		c.Rows = append(c.Rows, r)
	}
	differ := make([]float64, len(a))
	for i := range a {
		differ[i] = placementsDiffer(a[i], b[i])
	}
	c.Rows = append(c.Rows, row(metric{key: placementsKey, label: "Placements that differ", unit: "%"},
		make([]float64, len(a)), differ))
	left := undone(c.Mode, c.Rows, c.Pending)
	for i := range c.Rows {
		c.Rows[i].OtherWork = c.Rows[i].ofWork && left != ""
	}
	c.Verdict = verdictOn(c.Rows, left)
	c.Waits = reasonRows(a, b, func(r *replayed.Result, add func(string, float64)) {
		for _, wait := range r.WaitByReason {
			add(wait.Reason, wait.Seconds/3600)
		}
	})
	return c
}

// ordered are the metrics of a replay. For jobs that arrive and end, the bill, waits and completion come first.
func ordered(r *replayed.Result) []metric {
	if r.Mode != replayed.VirtualTime {
		return slices.DeleteFunc(slices.Clone(metrics), func(m metric) bool { return m.timeOnly })
	}
	list := slices.Clone(metrics)
	if r.Jobs > 0 {
		slices.SortStableFunc(list, func(a, b metric) int { return cmp.Compare(rank(a), rank(b)) })
	}
	return list
}

func rank(m metric) int {
	switch {
	case m.key == "bill":
		return 0
	case m.timeOnly:
		return 1
	default:
		return 2
	}
}

func values(results []*replayed.Result, of func(*replayed.Result) float64) []float64 {
	v := make([]float64, len(results))
	for i, r := range results {
		v[i] = of(r)
	}
	return v
}

func row(m metric, a, b []float64) Row {
	difference := make([]float64, len(a))
	for i := range a {
		difference[i] = b[i] - a[i]
	}
	r := Row{Key: m.key, Label: m.label, Unit: m.unit, Better: m.better, Measured: m.measured, derived: m.derived,
		ofWork: m.ofWork, A: stat(a), B: stat(b), Difference: stat(difference)}
	if r.A.Mean != 0 {
		percent := round(100 * r.Difference.Mean / r.A.Mean)
		r.Percent = &percent
	}
	if !slices.Contains(a, 0) {
		percents := make([]float64, len(a))
		for i := range a {
			percents[i] = 100 * difference[i] / a[i]
		}
		s := stat(percents)
		r.BySeed = &s
	}
	return r
}

func stat(v []float64) Stat {
	s := Stat{Min: math.Inf(1), Max: math.Inf(-1)}
	for _, x := range v {
		s.Mean += x
		s.Min, s.Max = min(s.Min, x), max(s.Max, x)
	}
	s.Mean, s.Min, s.Max = round(s.Mean/float64(len(v))), round(s.Min), round(s.Max)
	return s
}

func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// placementsDiffer is the percentage of the pods of both sides that are on different nodes.
func placementsDiffer(a, b *replayed.Result) float64 {
	both, differ := 0, 0
	for pod, node := range a.Placements {
		other, ok := b.Placements[pod]
		if !ok {
			continue
		}
		both++
		if other != node {
			differ++
		}
	}
	if both == 0 {
		return 0
	}
	return 100 * float64(differ) / float64(both)
}

func reasonRows(a, b []*replayed.Result,
	each func(*replayed.Result, func(reason string, amount float64))) []PendingRow {
	rows := map[string]*PendingRow{}
	add := func(results []*replayed.Result, side func(*PendingRow) *float64) {
		for _, r := range results {
			each(r, func(reason string, amount float64) {
				if rows[reason] == nil {
					rows[reason] = &PendingRow{Reason: reason}
				}
				*side(rows[reason]) += amount / float64(len(results))
			})
		}
	}
	add(a, func(r *PendingRow) *float64 { return &r.A })
	add(b, func(r *PendingRow) *float64 { return &r.B })
	list := make([]PendingRow, 0, len(rows))
	for _, r := range rows {
		list = append(list, PendingRow{Reason: r.Reason, A: round(r.A), B: round(r.B)})
	}
	slices.SortFunc(list, func(a, b PendingRow) int {
		return cmp.Or(cmp.Compare(b.A+b.B, a.A+a.B), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}
