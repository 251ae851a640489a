package main

import (
	"bytes"
	"strings"
	"testing"
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
	if err := report(&out, someRuns); err != nil {
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

func TestASingleSizeHasNoGrowth(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := report(&out, someRuns[:1]); err != nil || strings.Contains(out.String(), "grows") {
		t.Errorf("got error %v and %q, want no growth", err, out.String())
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
