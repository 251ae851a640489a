package demo

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/screen/tables"
)

func TestTheOutcomeFitsTheTerminal(t *testing.T) {
	t.Parallel()
	o := &Outcome{
		Nodes: map[string]*Node{"a100-3": {Name: "a100-3", Model: "NVIDIA-A100-SXM4-80GB", GPUs: 8,
			Domain: podview.Domain{Level: "rack", Value: "rack-2"}, Milli: 4000}},
		Placements: []Placement{{Workload: "gang-training", Profile: "gpu-aware-scheduler", Node: "a100-3", GPUs: 4,
			Milli: 1000}},
		Pending: []Pending{{Workload: "gang-too-large", Pods: 12,
			Why: "gang default/gang-too-large needs 12 nodes with 8 GPUs each, of which the cluster has 8: it holds nothing"}},
		Checks: []Check{{Claim: "one gang runs whole", OK: true, Found: "4 of 4"}},
	}
	for _, width := range []int{60, 80, 120, 200} {
		var out bytes.Buffer
		if err := o.WriteTable(tables.Output{Writer: &out, Screen: tables.Screen{Width: width}}); err != nil {
			t.Fatal(err)
		}
		if widest := text.LongestLineLen(out.String()); widest > width {
			t.Errorf("%d columns wide on a terminal of %d:\n%s", widest, width, out.String())
		}
		for _, want := range []string{"why there", "a100-3", "ok    one gang"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is missing on a terminal of %d:\n%s", want, width, out.String())
			}
		}
	}
}
