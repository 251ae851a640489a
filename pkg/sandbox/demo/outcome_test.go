package demo

import (
	"bytes"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/screen/tables"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestTheOutcomeFitsTheTerminal(t *testing.T) {
	t.Parallel()
	o := &Outcome{
		cluster: &overview.Cluster{Jobs: []overview.Job{
			{Namespace: "default", Kind: "Job", Name: "gang-training", State: overview.JobRunning, Pods: 8, Scheduled: 8,
				Nodes: []string{"a100-1", "a100-2", "a100-3", "a100-4"}},
			{Namespace: "default", Kind: "Job", Name: "gang-too-large", State: overview.JobPending, Pods: 12,
				Reason: "needs 12 nodes with 8 free nvidia.com/gpu; 8 have them, 4 more are needed"},
		}},
		Checks: []Check{{Claim: "one gang runs whole", OK: true, Found: "4 of 4"}},
	}
	for _, width := range []int{60, 80, 120, 200} {
		var out bytes.Buffer
		require.NoError(t, o.WriteTable(tables.Output{Writer: &out, Screen: tables.Screen{Width: width}}))
		if widest := text.LongestLineLen(out.String()); widest > width {
			t.Errorf("%d columns wide on a terminal of %d:\n%s", widest, width, out.String())
		}
		assert.Contains(t, out.String(), "allocated", "4 nodes", "ok    one gang")
	}
}
