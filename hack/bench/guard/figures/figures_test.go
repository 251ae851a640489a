package figures

import (
	"maps"
	"strings"
	"testing"

	"berth.dev/berth/test/harness/require"
)

var names = []string{"gangs", "memory", "start"}

const file = `memory: {unit: "× stock", figure: 1.25, spread: 0.02, command: "guard --update", date: "2026-11-26"}
gangs: {unit: "× stock", figure: 0.3, spread: 0.5, command: "guard --update", date: "2026-11-26"}
`

func TestJudge(t *testing.T) {
	t.Parallel()
	expected, err := Parse([]byte(file), names)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		figure   string
		measured float64
		want     Verdict
		fault    string
	}{
		"the figure":              {"gangs", 0.3, AsExpected, ""},
		"at the upper edge":       {"gangs", 0.449, AsExpected, ""},
		"at the lower edge":       {"gangs", 0.151, AsExpected, ""},
		"above it":                {"gangs", 0.4512, Worse, "gangs: measured 0.4512 × stock, expected 0.3, allowed 0.45"},
		"below it":                {"gangs", 0.149, Better, ""},
		"spreads are of a figure": {"memory", 1.28, Worse, "memory: measured 1.28 × stock, expected 1.25, allowed 1.275"},
		"no line in the file": {"start", 2, Unknown,
			"start: measured 2 × stock, and no figure is expected; --update adds it"},
	} {
		r := Result{Name: tc.figure, Unit: "× stock", Measured: tc.measured}
		r.Judge(expected)
		fault := ""
		if err := r.Fault(); err != nil {
			fault = err.Error()
		}
		if r.Verdict != tc.want || fault != tc.fault {
			t.Errorf("%s: verdict %q and fault %q, want %q and %q", name, r.Verdict, fault, tc.want, tc.fault)
		}
	}
}

func TestUpdateKeepsSpreadsAndWhatWasNotMeasured(t *testing.T) {
	t.Parallel()
	expected, err := Parse([]byte(file), names)
	require.NoError(t, err)
	Update(expected, []Result{
		{Name: "start", Unit: "× stock", Measured: 2.7}, {Name: "gangs", Unit: "× stock", Measured: 0.41234},
	}, "guard", "2026-12-01")
	text := Format(expected, names)
	want := head + `gangs: {unit: "× stock", figure: 0.4123, spread: 0.5, command: "guard", date: "2026-12-01"}
memory: {unit: "× stock", figure: 1.25, spread: 0.02, command: "guard --update", date: "2026-11-26"}
start: {unit: "× stock", figure: 2.7, spread: 0.2, command: "guard", date: "2026-12-01"}
`
	if string(text) != want {
		t.Errorf("the file is\n%s\nwant\n%s", text, want)
	}
	again, err := Parse(text, names)
	require.NoError(t, err)
	expected["gangs"] = again["gangs"] // rounded
	if !maps.Equal(again, expected) {
		t.Errorf("read back: %v, want %v", again, expected)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"gang: {figure: 1, spread: 0.1}":                                   `"gang" is not measured; want some of gangs, `,
		"gangs: {figure: -1, spread: 0.1}":                                 "gangs: figure: -1 is not allowed",
		"gangs: {figure: 1}":                                               "gangs: spread: 0 is not allowed",
		"gangs: {figure: 1, spread: 1}":                                    "gangs: spread: 1 is not allowed",
		"gangs: {figure: 1, spraed: 0.1}":                                  "spraed",
		"gangs: {figure: 1, spread: 0.1}\ngangs: {figure: 2, spread: 0.1}": "gangs",
	} {
		if _, err := Parse([]byte(text), names); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q in it", text, err, want)
		}
	}
}
