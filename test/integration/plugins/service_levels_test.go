package plugins_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/box"
)

// measuredFleet is nodes of different speed, and one with room for a single pod that only pods of the queue select.
const measuredFleet = `shapes:
- {name: fast, count: 1, allocatable: {cpu: "16", memory: 64Gi}}
- {name: slow, count: 1, allocatable: {cpu: "16", memory: 64Gi}}
- {name: unmeasured, count: 1, allocatable: {cpu: "16", memory: 64Gi}}
- {name: narrow, count: 1, labels: {narrow: "yes"}, allocatable: {cpu: "1", memory: 64Gi}}
`

// serviceLevels are args of Coscheduling.
const serviceLevels = `sla: {classes: [{name: interactive, deadlineSeconds: 60}, {name: batch, deadlineSeconds: 14400, timeoutSeconds: 5}]}`

// serviceProfile follows gangConfig. The URL is that of the figures.
const serviceProfile = `  - schedulerName: slo-scheduler
    plugins:
      queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
      postFilter: {enabled: [{name: Coscheduling}]}
      multiPoint: {enabled: [{name: Coscheduling}, {name: SLAAware, weight: 20}]}
    pluginConfig:
      - *coscheduling
      - {name: SLAAware, args: {signals: {prometheus: {url: %q, interval: 5s}, latencyMsQuery: latency}}}
`

// figures is a Prometheus that knows the latency of two nodes, and counts how often it was asked.
type figures struct {
	*httptest.Server
	asked atomic.Int64
}

func newFigures(t *testing.T) *figures {
	t.Helper()
	f := &figures{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked.Add(1)
		var samples []string
		if r.FormValue("query") == "latency" {
			for node, ms := range map[string]string{"fast-0": "80", "slow-0": "400"} {
				samples = append(samples, fmt.Sprintf(`{"metric":{"node":%q},"value":[%d,%q]}`, node, time.Now().Unix(), ms))
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(samples, ","))
	}))
	t.Cleanup(f.Close)
	return f
}

// testServiceLevels has pods go where their objective is met, take their turn by the deadline of their class, and be
// told that they wait for too long.
func testServiceLevels(t *testing.T, b *box.Box, measured *figures) {
	b = b.Part(t, "levels", measuredFleet)
	// A second round has begun only after the first was published.
	b.Await(t, "two rounds of queries", func(context.Context) (bool, error) { return measured.asked.Load() >= 2, nil })
	create := func(name string, changes ...func(*v1.Pod)) {
		t.Helper()
		b.Create(t, pod(name, "slo-scheduler", append(changes, asking(strs{"cpu": "1", "memory": "1Gi"}))...))
	}

	quick := annotated(strs{wellknown.SLOLatencyKey: "100"})
	create("quick", quick)
	b.Bound(t, "quick", "fast-0")
	// A gang is dry-run with the same scores.
	create("pair-0", quick, ganged("pair", "2"))
	create("pair-1", quick, ganged("pair", "2"))
	b.Bound(t, "pair-0", "fast-0")
	b.Bound(t, "pair-1", "fast-0")
	create("unreadable", annotated(strs{wellknown.SLOThroughputKey: "lots"}))
	b.Told(t, "unreadable", `pod annotation berth.dev/slo-throughput: "lots" is not a decimal number`)
	create("unclassed", labeled(strs{wellknown.SLAClassKey: "gold"}))
	b.Told(t, "unclassed", `pod label berth.dev/sla-class: "gold" is not one of the classes open to pods of PriorityClass "": "interactive", "batch"`)
	b.Patch(t, "unclassed", `{"metadata":{"labels":{"berth.dev/sla-class":"batch"}}}`)
	b.Bound(t, "unclassed", "")

	inQueue := func(name, class string) {
		t.Helper()
		create(name, selecting(strs{"narrow": "yes"}), annotated(strs{wellknown.SLAClassKey: class}))
	}
	inQueue("first", "interactive")
	b.Bound(t, "first", "narrow-0")
	inQueue("older", "batch")
	b.Told(t, "older", "Insufficient cpu")
	inQueue("younger", "interactive")
	b.Told(t, "younger", "Insufficient cpu")
	refused := time.Now()
	b.Told(t, "older", "the pod waits for longer than the 5 seconds that its class batch allows (berth.dev/sla-class)")
	// The queue puts a pod that did not fit off, for two seconds if that was the second time. If only one of them could
	// be tried, it would be bound out of turn.
	b.Await(t, "both to be put off no longer", func(context.Context) (bool, error) {
		return time.Since(refused) >= 3*time.Second, nil
	})
	b.Remove(t, "first")
	b.Bound(t, "younger", "narrow-0")

	b.KillScheduler(t)
	b.Remove(t, "younger")
	b.Bound(t, "older", "narrow-0")
	if n, err := b.Events(t.Context(), "younger", "the pod waits for longer"); n != 0 || err != nil {
		t.Errorf("%d events about a timeout of a class that has none, %v", n, err)
	}
}
