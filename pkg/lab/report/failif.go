package report

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"berth.dev/berth/pkg/lab/replay/replayed"
)

// Condition is a bound on how much a metric may change from A to B.
type Condition struct {
	text    string
	metric  string
	greater bool
	bound   float64
	percent bool
}

var conditionPattern = regexp.MustCompile(`^\s*([a-z0-9-]+)\s*([<>])\s*([+-]?[0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(%?)\s*$`)

// ParseCondition reads a condition such as cost>+2% (the mean cost rises by more than two percent of A's) or
// allocated<-0.5 (it falls by more than half of the metric's unit, here percentage points).
func ParseCondition(text string) (Condition, error) {
	m := conditionPattern.FindStringSubmatch(text)
	if m == nil {
		return Condition{}, fmt.Errorf(
			"condition %q: want a metric, > or <, and a change in the metric's unit or percent, such as cost>+2%%", text)
	}
	known := ConditionMetrics()
	if !slices.Contains(known, m[1]) {
		return Condition{}, fmt.Errorf("condition %q: metric %q is unknown; known are %s", text, m[1],
			strings.Join(known, ", "))
	}
	bound, err := strconv.ParseFloat(m[3], 64)
	if err != nil || math.IsInf(bound, 0) {
		return Condition{}, fmt.Errorf("condition %q: %q is not a number", text, m[3])
	}
	return Condition{text: strings.TrimSpace(text), metric: m[1], greater: m[2] == ">", bound: bound,
		percent: m[4] == "%"}, nil
}

// ConditionMetrics returns the metrics that a condition may be about.
func ConditionMetrics() []string {
	known := []string{placementsKey}
	for _, k := range metrics {
		known = append(known, k.key)
	}
	return known
}

// MeasuredIn fails for a condition about a metric that replays of a mode do not have.
func (c Condition) MeasuredIn(mode replayed.Mode) error {
	if mode == replayed.ArrivalOrder &&
		slices.ContainsFunc(metrics, func(m metric) bool { return m.key == c.metric && m.timeOnly }) {
		return fmt.Errorf("condition %q: metric %q is not measured in mode %s", c.text, c.metric, mode)
	}
	return nil
}

// Check returns a sentence if the condition holds, else an empty string. A condition on a metric that the comparison
// does not have does not hold.
func (c Condition) Check(comparison *Comparison) string {
	for _, r := range comparison.Rows {
		if r.Key != c.metric {
			continue
		}
		change, unit := r.Difference.Mean, " "+r.Unit
		if c.percent {
			unit = "%"
			switch {
			case r.Percent != nil:
				change = *r.Percent
			case change != 0: // a change from 0 is more than any percentage
				change = math.Copysign(math.Inf(1), change)
			}
		}
		if c.greater && change > c.bound || !c.greater && change < c.bound {
			return fmt.Sprintf("%s: %s changes by %+.4g%s", c.text, r.Label, change, unit)
		}
	}
	return ""
}
