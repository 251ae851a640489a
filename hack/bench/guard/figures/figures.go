// Package figures holds what a benchmark measured against what a file expects. A figure is better the lower it is.
package figures

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Expectation is a line of the file: what a figure was when it was last taken.
type Expectation struct {
	Unit   string  `json:"unit"`
	Figure float64 `json:"figure"`
	// Spread is by which part of itself the figure may deviate.
	Spread float64 `json:"spread"`
	// Command and Date say how and when it was taken.
	Command string `json:"command"`
	Date    string `json:"date"`
}

// Verdict is how a figure compares with what is expected.
type Verdict string

// The verdicts. A figure that is worse or unknown is a fault.
const (
	AsExpected Verdict = "as expected"
	Better     Verdict = "better: --update tightens it"
	Worse      Verdict = "WORSE"
	Unknown    Verdict = "UNKNOWN"
)

// Result is a figure that was measured, in several runs if it scatters, and what was expected.
type Result struct {
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	Measured float64 `json:"measured"`
	Least    float64 `json:"least"`
	Most     float64 `json:"most"`
	Expected float64 `json:"expected"`
	Allowed  float64 `json:"allowed"`
	Verdict  Verdict `json:"verdict"`
}

// Judge completes a result.
func (r *Result) Judge(expected map[string]Expectation) {
	e, known := expected[r.Name]
	r.Expected, r.Allowed = e.Figure, e.Figure*(1+e.Spread)
	switch {
	case !known:
		r.Verdict = Unknown
	case r.Measured > r.Allowed:
		r.Verdict = Worse
	case r.Measured < e.Figure*(1-e.Spread):
		r.Verdict = Better
	default:
		r.Verdict = AsExpected
	}
}

// Fault is an error if the figure is worse than allowed, or unknown.
func (r *Result) Fault() error {
	switch r.Verdict {
	case Worse:
		return fmt.Errorf("%s: measured %.4g %s, expected %.4g, allowed %.4g",
			r.Name, r.Measured, r.Unit, r.Expected, r.Allowed)
	case Unknown:
		return fmt.Errorf("%s: measured %.4g %s, and no figure is expected; --update adds it", r.Name, r.Measured, r.Unit)
	}
	return nil
}

// Parse reads a file, in which every figure has to be one of those that are measured.
func Parse(text []byte, names []string) (map[string]Expectation, error) {
	expected := map[string]Expectation{}
	if err := yaml.UnmarshalStrict(text, &expected); err != nil {
		return nil, fmt.Errorf("reading what is expected: %w", err)
	}
	for name, e := range expected {
		switch {
		case !slices.Contains(names, name):
			return nil, fmt.Errorf("%q is not measured; want some of %s", name, strings.Join(names, ", "))
		case !(e.Figure >= 0):
			return nil, fmt.Errorf("%s: figure: %v is not allowed; want at least 0", name, e.Figure)
		case !(e.Spread > 0 && e.Spread < 1):
			return nil, fmt.Errorf("%s: spread: %v is not allowed; want more than 0 and less than 1", name, e.Spread)
		}
	}
	return expected, nil
}

// defaultSpread is that of a figure which is new in the file.
const defaultSpread = 0.2

// Update takes over what was measured. A figure keeps its spread.
func Update(expected map[string]Expectation, results []Result, command, date string) {
	for _, r := range results {
		spread := defaultSpread
		if e, known := expected[r.Name]; known {
			spread = e.Spread
		}
		expected[r.Name] = Expectation{r.Unit, r.Measured, spread, command, date}
	}
}

const head = `# What "make bench-guard" expects; see hack/bench/RESULTS.md. A figure is better the lower it is, and may deviate
# by spread times itself. The spread is set by hand, the rest by: make bench-guard GUARDFLAGS=--update
`

// Format writes a file, with a line for each figure in the order of the names.
func Format(expected map[string]Expectation, names []string) []byte {
	text := []byte(head)
	for _, name := range names {
		if e, known := expected[name]; known {
			text = fmt.Appendf(text, "%s: {unit: %q, figure: %.4g, spread: %v, command: %q, date: %q}\n",
				name, e.Unit, e.Figure, e.Spread, e.Command, e.Date)
		}
	}
	return text
}
