package tools_test

import (
	"fmt"
	"testing"
	"time"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/signals"
	"berth.dev/berth/pkg/sla"
	"berth.dev/berth/test/harness/assert"
)

// startFigures reads the figures of nodes. Its first round begins when begin is called, as with a scheduler that hears
// of its nodes.
func startFigures(t *testing.T, slo config.SLOSignals, nodes ...signals.Node) (
	r *signals.Reader[signals.FigureSnapshot], begin func(),
) {
	t.Helper()
	args := &config.SLAAwareArgs{Signals: &slo}
	args.SetDefaults()
	factory := newFactory()
	r, err := signals.StartFigures(t.Context(), factory, args.Signals, func() []signals.Node { return nodes })
	if err != nil {
		t.Fatalf("starting the reader: %v", err)
	}
	t.Cleanup(factory.Shutdown)
	return r, func() { factory.Start(t.Context().Done()) }
}

func TestFiguresAreReadFromARealPrometheusAndOutliveItForAWhile(t *testing.T) {
	t.Parallel()
	exported := startExporter(t,
		`request_seconds{node="a",app="x"} 0.080`,
		`request_seconds{node="a",app="y"} 0.120`,
		`request_seconds{node="b.example.com",app="x"} 0.5`,
		`request_seconds{node="idle",app="x"} 0`,
		`request_seconds{node="silent",app="x"} NaN`,
		`request_seconds{node="negative",app="x"} -1`,
		`request_seconds{node="huge",app="x"} 9223372036854775794`,
		`request_seconds{node="gone",app="x"} 1`,
		`request_seconds{app="x"} 1`,
		`tokens_per_second{node="a",app="x"} 900`,
		`tokens_per_second{node="a",app="y"} 700`,
	)
	server := startPrometheus(t, exported.job("apps", ""), "", "")
	r, begin := startFigures(t, config.SLOSignals{
		Prometheus:      soon(server.url),
		LatencyMsQuery:  "request_seconds * 1000",
		ThroughputQuery: "tokens_per_second",
	}, signals.Node{Name: "a"}, signals.Node{Name: "b.example.com", Hostname: "b"}, signals.Node{Name: "idle"},
		signals.Node{Name: "silent"}, signals.Node{Name: "negative"}, signals.Node{Name: "huge"},
		signals.Node{Name: "unmeasured"})
	if r.Snapshot().Any(time.Now()) {
		t.Error("something is known before the first round")
	}
	begin()
	reads(t, func() string {
		if got := r.Snapshot().Of("a", time.Now()); got.LatencyMs == 0 || got.Throughput == 0 {
			return fmt.Sprintf("figures of node a: %v", got)
		}
		return ""
	})
	check := func(when string, now time.Time) {
		t.Helper()
		for node, want := range map[string]sla.Figures{
			// The worst of the series.
			"a": {LatencyMs: 120, Throughput: 700}, "b.example.com": {LatencyMs: 500},
			"idle": {}, "silent": {}, "negative": {}, "huge": {}, "unmeasured": {}, "gone": {}, "": {},
		} {
			assert.Equal(t, fmt.Sprintf("%s, node %q", when, node), want, r.Snapshot().Of(node, now))
		}
		if !r.Snapshot().Any(now) {
			t.Errorf("%s nothing is known", when)
		}
	}
	check("while the server runs", time.Now())

	kept := r.Snapshot()
	exported.set(`request_seconds{node="b.example.com"} 0.25`, `tokens_per_second{node="b.example.com"} 5`)
	reads(t, func() string {
		if got := r.Snapshot().Of("b.example.com", time.Now()); got != (sla.Figures{LatencyMs: 250, Throughput: 5}) {
			return "the new figures of node b are not there"
		}
		if got := r.Snapshot().Of("a", time.Now()); got != (sla.Figures{}) {
			return "node a, which the exporter has dropped, still has figures"
		}
		return ""
	})
	if got := kept.Of("a", time.Now()); got != (sla.Figures{LatencyMs: 120, Throughput: 700}) {
		t.Errorf("a snapshot that is in use has changed: %v", got)
	}

	server.stop()
	server.failsAgain(t, "slo_latency")
	if got := r.Snapshot().Of("b.example.com", time.Now()); got.LatencyMs != 250 {
		t.Errorf("after the server's end: %v, want what it said last", got)
	}
	late := time.Now().Add(3 * time.Minute)
	if got := r.Snapshot().Of("b.example.com", late); got != (sla.Figures{}) || r.Snapshot().Any(late) {
		t.Errorf("after maxAge: %v, want nothing", got)
	}
}

func TestOldSamplesAreNoFigures(t *testing.T) {
	t.Parallel()
	// Five minutes are the server's own limit: not every version keeps to the one that it is asked for.
	old := time.Now().Add(-6 * time.Minute).Unix()
	young := time.Now().Add(-1 * time.Minute).Unix()
	server := startPrometheus(t, "", backfill(t, []string{
		"# TYPE latency_ms gauge",
		fmt.Sprintf(`latency_ms{node="old"} 10 %d`, old),
		fmt.Sprintf(`latency_ms{node="young"} 10 %d`, young),
	}), "")
	r, begin := startFigures(t, config.SLOSignals{Prometheus: soon(server.url), LatencyMsQuery: "latency_ms"},
		signals.Node{Name: "old"}, signals.Node{Name: "young"})
	begin()
	reads(t, func() string {
		if r.Snapshot().Of("young", time.Now()).LatencyMs != 10 {
			return "no figure of the node whose sample is a minute old"
		}
		return ""
	})
	if got := r.Snapshot().Of("old", time.Now()); got != (sla.Figures{}) {
		t.Errorf("a sample of 6 minutes ago counts as %v", got)
	}
}

// One query that cannot be answered takes nothing from the other.
func TestABadQueryOfOneFigureLeavesTheOther(t *testing.T) {
	t.Parallel()
	exported := startExporter(t, `latency_ms{node="a"} 10`)
	server := startPrometheus(t, exported.job("apps", ""), "", "")
	r, begin := startFigures(t, config.SLOSignals{Prometheus: soon(server.url), LatencyMsQuery: "latency_ms",
		ThroughputQuery: "rate("}, signals.Node{Name: "a"})
	begin()
	reads(t, func() string {
		if r.Snapshot().Of("a", time.Now()) != (sla.Figures{LatencyMs: 10}) {
			return "no latency"
		}
		return ""
	})
	const failures = "berth_signal_query_failures_total"
	server.failsAgain(t, "slo_throughput")
	if failed := measured(t, failures, server.url, "slo_latency"); failed > 0 {
		t.Errorf("%v queries for the latency have failed, want that those for the throughput alone fail", failed)
	}
}
