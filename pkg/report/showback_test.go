package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/pkg/price"
	"berth.dev/berth/pkg/showback"
)

// month is a statement of 30 days with ten keys; one would be markup.
func month(t *testing.T) *showback.Statement {
	t.Helper()
	from := time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
	room := price.Capacity{MilliCPU: 96_000, MemoryMiB: 1 << 20, MilliGPU: 16_000}
	node := showback.Node{Name: "n", Split: price.NewSplit(32*price.Dollar, room,
		price.Rates{Core: 30_000, MemoryGiB: 4_000, GPU: 350_000}), Priced: true}
	var uses []showback.Use
	for i := range 10 {
		key := fmt.Sprint("team-", i)
		if i == 0 {
			key = "<b>bold</b>"
		}
		uses = append(uses, showback.Use{Node: "n", Key: key, From: from.AddDate(0, 0, i), To: from.AddDate(0, 0, 29-i),
			KeepsNode: true,
			Request:   price.Capacity{MilliCPU: 6000, MemoryMiB: 1 << 16, MilliGPU: 1000}})
	}
	s, err := showback.Account(from, from.AddDate(0, 0, 30), []showback.Node{node}, uses)
	if err != nil {
		t.Fatal(err)
	}
	s.Source, s.Input, s.By = "replay", "month", "namespace"
	return s
}

func TestAStatementIsATable(t *testing.T) {
	t.Parallel()
	s := month(t)
	var table bytes.Buffer
	if err := WriteShowback(&table, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"month by namespace, from 2026-01-05T00:00:00Z to 2026-02-04T00:00:00Z (30d), by replay",
		"team-1 ", "648.00", "$1296.00",
		"idle, on nodes in use", "empty nodes", "total                   11520.00           100.0  $23040.00",
		"note: use of the GPUs was not measured"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("there is no %q in\n%s", want, &table)
		}
	}
	used := int64(324 * 3_600_000)
	s.Measured, s.Lines[1].UsedMilliGPUSeconds = true, &used
	s.Total.MicroDollars, s.Nodes, s.NodesWithoutPrice = 0, 1, 1
	table.Reset()
	if err := WriteShowback(&table, s); err != nil {
		t.Fatal(err)
	}
	if got := table.String(); !strings.Contains(got, "324.00 (50.0 %)") || strings.Contains(got, "$") ||
		!strings.Contains(got, "no node has a price") {
		t.Errorf("of a cluster without prices, in which use was measured:\n%s", got)
	}
}

func TestAStatementIsAPage(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	if err := WriteShowbackHTML(&page, month(t)); err != nil {
		t.Fatal(err)
	}
	got := page.String()
	for _, want := range []string{"&lt;b&gt;bold&lt;/b&gt;", "GPU-hours a day", "Dollars a day", `class="stack s5"`, "4 others", "$23040.00", "5 Jan"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in the page", want)
		}
	}
	for _, wrong := range []string{"<b>bold", "http://", "https://", "NaN", "<script"} {
		if strings.Contains(got, wrong) {
			t.Errorf("there is %q in the page", wrong)
		}
	}
}
