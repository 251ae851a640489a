package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCells(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, contender string
		column          int
		group           group
		want            string
	}{
		{"median, least and most of several runs", "berth", 0, group{500, "mix"}, "6.50 (3.00–10.00)"},
		{"ratios are to stock of the same repeat", "berth", 1, group{500, "mix"}, "2.00 (1.50–2.50)"},
		{"one run has no spread", "berth", 0, group{5000, "mix"}, "7.00"},
		{"no ratio without stock", "berth", 1, group{5000, "mix"}, "-"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := columns[tt.column].cell(someRuns, tt.group, tt.contender); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTablesHaveWhatWasMeasured(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := writeTables(&out, someRuns); err != nil {
		t.Fatal(err)
	}
	small, large, found := strings.Cut(out.String(), "5000 nodes, 9 pods (mix); median of 1 runs")
	if !found || !strings.Contains(small, "500 nodes, 8 pods (mix); median of 2 runs") {
		t.Fatalf("the tables should be of 500 and then of 5000 nodes:\n%s", out.String())
	}
	if !strings.Contains(small, "│ stock │") || strings.Contains(large, "│ stock │") {
		t.Errorf("stock was measured at 500 nodes only:\n%s", out.String())
	}
}

func TestJSONHasEveryRun(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(results{SchedulerEnv: []string{"GOGC=200"}, Runs: someRuns})
	if err != nil {
		t.Fatal(err)
	}
	var got results
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(results{SchedulerEnv: []string{"GOGC=200"}, Runs: someRuns}, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func TestGrowthHasARowForEachSize(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := writeGrowth(&out, someRuns); err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(out.String()) {
		if cells := strings.Split(line, "│"); len(cells) == 5 && !strings.Contains(line, ",\n") {
			row := cells[1:4]
			for i := range row {
				row[i] = strings.TrimSpace(row[i])
			}
			rows = append(rows, row)
		}
	}
	want := [][]string{{"nodes", "mix,", "mix,"}, {"", "berth", "stock"}, {"500", "6.50 (3.00–10.00)", "3.00 (2.00–4.00)"}, {"5,000", "7.00", "-"}}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestASingleSizeHasNoGrowth(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := writeGrowth(&out, someRuns[:1]); err != nil || out.Len() > 0 {
		t.Errorf("got error %v and %q, want nothing", err, out.String())
	}
}

func TestPlotIsLabeledXML(t *testing.T) {
	t.Parallel()
	odd := run{Nodes: 500, Workload: "a<b", Contender: "R&D", Repeat: 1, CPUMillisPerPod: 1}
	svg := growthPlot(append([]run{odd}, someRuns...))
	decoder := xml.NewDecoder(strings.NewReader(svg))
	var all strings.Builder
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the plot is no XML: %v\n%s", err, svg)
		}
		if data, ok := token.(xml.CharData); ok {
			all.Write(data)
			all.WriteByte('\n')
		}
	}
	for _, want := range []string{
		"nodes (logarithmic scale)", "Workload mix, ms of CPU per pod", "Workload a<b, ms of CPU per pod",
		"R&D", "berth", "500", "5,000",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("the plot has no text %q:\n%s", want, all.String())
		}
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 10050: "10,050", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}
