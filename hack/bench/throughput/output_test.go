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

// someRuns are two repeats of two contenders at one size, and one of them at another.
var someRuns = []run{
	{Nodes: 5000, Workload: "mix", Contender: "berth", Repeat: 1, Pods: 9, CPUMillisPerPod: 7},
	{Nodes: 500, Workload: "mix", Contender: "stock", Repeat: 1, Pods: 8, CPUMillisPerPod: 2, PodsPerSecond: 100},
	{Nodes: 500, Workload: "mix", Contender: "berth", Repeat: 1, Pods: 8, CPUMillisPerPod: 3, PodsPerSecond: 50},
	{Nodes: 500, Workload: "mix", Contender: "berth", Repeat: 2, Pods: 8, CPUMillisPerPod: 10, PodsPerSecond: 60},
	{Nodes: 500, Workload: "mix", Contender: "stock", Repeat: 2, Pods: 8, CPUMillisPerPod: 4, PodsPerSecond: 120},
}

func TestTablesHaveWhatWasMeasured(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := report(&out, someRuns, ""); err != nil {
		t.Fatal(err)
	}
	small, rest, found := strings.Cut(out.String(), "5000 nodes, 9 pods (mix); median of 1 runs")
	large, growth, _ := strings.Cut(rest, "CPU ms/pod as the cluster grows")
	if !found || !strings.Contains(small, "500 nodes, 8 pods (mix); median of 2 runs") {
		t.Fatalf("the tables should be of 500 and then of 5000 nodes:\n%s", out.String())
	}
	if !strings.Contains(small, "│ stock │") || strings.Contains(large, "│ stock │") {
		t.Errorf("stock was measured at 500 nodes only:\n%s", out.String())
	}
	for _, want := range []string{"6.50 (3.00–10.00)", "2.00 (1.50–2.50)"} {
		if !strings.Contains(small, want) {
			t.Errorf("the table of 500 nodes should have %q:\n%s", want, small)
		}
	}
	if !strings.Contains(growth, "│ 5,000 │") {
		t.Errorf("the growth should have a row for 5,000 nodes:\n%s", growth)
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

func TestASingleSizeHasNoGrowth(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := report(&out, someRuns[:1], ""); err != nil || strings.Contains(out.String(), "grows") {
		t.Errorf("got error %v and %q, want no growth", err, out.String())
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
