package tool_test

import (
	"bytes"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"berth.dev/berth/pkg/process/rights"
	"berth.dev/berth/pkg/screen/tables"
	"berth.dev/berth/pkg/validate"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestTheReportFitsTheTerminal(t *testing.T) {
	t.Parallel()
	r := &validate.Report{Objects: 1, Rights: &rights.Report{Account: "a", Checked: 3, Missing: []rights.Need{{
		Group: "scheduling.x-k8s.io", Resource: "podgroups/status", Verb: "patch", Weight: "feature",
		For:  []string{"Coscheduling"},
		Lost: "the status of a PodGroup does not say how many of its members are scheduled",
	}}}}
	for _, profile := range []string{"gpu-aware-scheduler", "cost-optimized-scheduler", "training-scheduler",
		"inference-scheduler", "batch-scheduler"} {
		r.Profiles = append(r.Profiles,
			validate.Profile{Name: profile, Weights: []validate.Weight{{Plugin: "NodeResourcesBalancedAllocation", Weight: 1}}})
	}
	for _, width := range []int{60, 80, 120, 200} {
		var out bytes.Buffer
		require.NoError(t, r.WriteTable(tables.Output{Writer: &out, Screen: tables.Screen{Width: width, Color: true}}))
		if widest := text.LongestLineLen(out.String()); widest > width {
			t.Errorf("%d columns wide on a terminal of %d:\n%s", widest, width, out.String())
		}
		assert.Contains(t, out.String(), "gpu-", "1 object, 0 errors", "1 missing")
	}
}

func TestSeveritiesHaveColorsOnATerminalOnly(t *testing.T) {
	t.Parallel()
	r := &validate.Report{Findings: []validate.Finding{{File: "f", Severity: validate.Error, Message: "m", Rule: "r"}}}
	for want, screen := range map[string]tables.Screen{
		"f: \x1b[31merror\x1b[0m: m (r)\n0 objects, 1 error, 0 warnings\n": {Color: true},
		"f: error: m (r)\n0 objects, 1 error, 0 warnings\n":                {},
	} {
		var out bytes.Buffer
		require.NoError(t, r.WriteTable(tables.Output{Writer: &out, Screen: screen}))
		if out.String() != want {
			t.Errorf("printed %q, want %q", out.String(), want)
		}
	}
}
