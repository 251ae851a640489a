package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadPackage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		source string
		want   []metric
		// fails is part of the error; empty: none.
		fails string
	}{
		"options with constants and a variable of labels": {
			source: "const sub = \"berth_x\"\nvar labels = []string{\"a\", sub}\n" +
				"var m = metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: sub, Name: \"y_total\", Help: \"One \" +\n" +
				"\"two.\"}, labels)",
			want: []metric{{name: "berth_x_y_total", kind: "counter", help: "One two.", labels: []string{"a", "berth_x"}}},
		},
		"a description, and one within a function": {
			source: "var d = metrics.NewDesc(\"berth_free\", \"Free.\", []string{}, nil, metrics.ALPHA, \"\")\n" +
				"func f() { _ = prometheus.NewGauge(prometheus.GaugeOpts{Name: \"berth_g\", Help: \"G.\"}) }",
			want: []metric{{name: "berth_free", kind: "gauge", help: "Free."}, {name: "berth_g", kind: "gauge", help: "G."}},
		},
		"a metric without a name is none": {source: "var m = metrics.NewCounter(&metrics.CounterOpts{})"},
		"other functions of these names":  {source: "var m = bank.NewCounter(3)"},
		"a name that is computed": {
			source: "var m = metrics.NewCounter(&metrics.CounterOpts{Name: f()})",
			fails:  "p.go:3:55: a metric's name, help and labels have to be texts or constants of the package",
		},
		"labels that are computed": {
			source: "var m = metrics.NewGaugeVec(&metrics.GaugeOpts{Name: \"x\"}, append(a, b))",
			fails:  "a metric's labels have to be a list",
		},
		"options from elsewhere": {source: "var m = metrics.NewGauge(options)", fails: "have to be written where it is made"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "p.go"), []byte("package p\n\n"+tc.source+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readPackage(folder)
			if tc.fails == "" && err != nil || tc.fails != "" && (err == nil || !strings.Contains(err.Error(), tc.fails)) {
				t.Fatalf("error %v, want one with %q", err, tc.fails)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(metric{})); tc.fails == "" && diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
		})
	}
}
