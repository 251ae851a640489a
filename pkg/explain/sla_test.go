package explain

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// A pod with an objective and a class is explained as the scheduler of the example would place it, without what
// Prometheus knows.
func TestServiceLevelsAreExplained(t *testing.T) {
	t.Parallel()
	c, err := schedulerconfig.Load("../../manifests/configurations/service-levels.yaml")
	require.NoError(t, err)
	for _, tc := range []struct {
		name   string
		change func(*v1.Pod)
		winner bool
		// said is in the verdict or in why a node is rejected.
		said string
		// row is in the one row about what the plugin could not score by, empty if there is to be none.
		row string
	}{
		{"a class and an objective", func(p *v1.Pod) {
			p.Labels = map[string]string{"berth.dev/sla-class": "batch"}
			p.Annotations = map[string]string{"berth.dev/slo-latency-ms": "200"}
		}, true, "", `not scored by SLAAware: the pod asks for a latency of at most 200 ms; the figures of the nodes are in Prometheus ` +
			`(http://prometheus.monitoring:9090, query "1000 * histogram_quantile(0.95, `},
		{"an objective without a query",
			func(p *v1.Pod) { p.Annotations = map[string]string{"berth.dev/slo-throughput": "900"} }, true, "",
			"not scored by SLAAware: the pod asks for a throughput of at least 900, and the arguments have no " +
				"signals.throughputQuery\n"},
		{"no objective", func(*v1.Pod) {}, true, "", ""},
		{"a class that is not open to the pod",
			func(p *v1.Pod) { p.Labels = map[string]string{"berth.dev/sla-class": "interactive"} }, false,
			`pod label berth.dev/sla-class: "interactive" is not one of the classes open to pods of PriorityClass "": "batch"`, ""},
		{"an objective that cannot be read",
			func(p *v1.Pod) { p.Annotations = map[string]string{"berth.dev/slo-throughput": "-1"} }, false,
			`pod annotation berth.dev/slo-throughput: "-1" is not a decimal number`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := pod("p", "", "1", 0)
			p.Spec.SchedulerName = "berth-scheduler"
			tc.change(p)
			e, err := Pod(Question{Configuration: c, Objects: []runtime.Object{node("a", "8"), node("b", "8"), p}, Pod: p,
				Now: now})
			require.NoError(t, err)
			if (e.Winner != "") != tc.winner {
				t.Errorf("winner %q, want one: %t", e.Winner, tc.winner)
			}
			said := e.Verdict
			for _, n := range e.Nodes {
				if n.Rejected != nil {
					said += "\n" + strings.Join(n.Rejected.Reasons, "\n")
				}
			}
			assert.Contains(t, said, tc.said)
			text := onPaper(t, e, 5)
			if !strings.Contains(text, tc.row) || tc.row == "" && strings.Contains(text, "not scored by") {
				t.Errorf("the table is\n%s\nwant the row %q", text, tc.row)
			}
			assert.Contains(t, strings.Join(e.Notes, "\n"), "SLAAware was run without what Prometheus would tell it")
		})
	}
}
