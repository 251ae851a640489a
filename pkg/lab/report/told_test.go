package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/test/harness/require"
)

func TestWhatTheSidesDoOtherwiseIsOnThePage(t *testing.T) {
	t.Parallel()
	a := []*replayed.Result{result("a.yaml", 1, 2000, 1_000_000, nil)}
	b := []*replayed.Result{result("b.yaml", 1, 2000, 2_000_000, nil)}
	a[0].NodesUnpriced, b[0].PricesMicroDollars = 1, 2_000_000
	a[0].Notes, b[0].Notes = []string{"on both", "on A"}, []string{"on both"}
	b[0].WaitByReason = []replayed.Wait{{Reason: "spot is avoided", Pods: 3, Seconds: 5400}}
	b[0].Incomplete = 2
	c := Compare(a, b)
	const prices = "the configurations price the nodes differently (in sum, A no price, B $2/h), so cost and bill " +
		"cannot be compared"
	notes := c.Notes()
	if !slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, prices) }) ||
		!slices.Contains(notes, "on both") || !slices.Contains(notes, "A: on A") || slices.Contains(notes, "B: on both") {
		t.Errorf("notes %q", notes)
	}
	if want := "B leaves 2 pods pending or in incomplete gangs, A 0"; !strings.Contains(c.Verdict.Undone, want) {
		t.Errorf("undone %q, want %q", c.Verdict.Undone, want)
	}
	var table, page bytes.Buffer
	require.NoError(t, WriteTable(&table, c))
	require.NoError(t, WriteHTML(&page, c))
	for name, text := range map[string]string{"table": table.String(), "page": page.String()} {
		for _, want := range []string{"hours", "spot is avoided", "1.5", "Pods of incomplete gangs"} {
			if !strings.Contains(strings.ToLower(text), strings.ToLower(want)) {
				t.Errorf("the %s does not say %q:\n%s", name, want, text)
			}
		}
	}
}
