package slaaware

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// measuredFleet is nodes of different speed, and one with room for a single pod that only pods of the queue select.
const measuredFleet = `shapes:
- {name: fast, count: 1, allocatable: {cpu: "16", memory: 64Gi}}
- {name: slow, count: 1, allocatable: {cpu: "16", memory: 64Gi}}
- {name: unmeasured, count: 1, allocatable: {cpu: "16", memory: 64Gi}}
- {name: narrow, count: 1, labels: {narrow: "yes"}, allocatable: {cpu: "1", memory: 64Gi}}
`

const slaConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: slo-scheduler
    plugins:
      queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
      postFilter: {enabled: [{name: Coscheduling}]}
      multiPoint:
        enabled:
          - {name: Coscheduling}
          - {name: SLAAware, weight: 20}
    pluginConfig:
      - name: Coscheduling
        args:
          sla:
            classes:
              - {name: interactive, deadlineSeconds: 60}
              - {name: batch, deadlineSeconds: 14400, timeoutSeconds: 5}
      - name: SLAAware
        args:
          signals:
            prometheus: {url: %q, interval: 5s}
            latencyMsQuery: latency
`

// TestServiceLevelsOnARealControlPlane has pods go where their objective is met, take their turn by the deadline of their class,
// and be told that they wait for too long.
//
//nolint:paralleltest // the parts of the story follow each other on one control plane
func TestServiceLevelsOnARealControlPlane(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	measured := figureServer(t, map[string]map[string]string{"latency": {"fast-0": "80", "slow-0": "400"}})
	counted := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		measured.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(counted.Close)
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, slaConfig, counted.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	box := box.Start(t, measuredFleet, sandbox.Options{SchedulerConfig: config, NoKubelet: true})
	// A second round has begun only after the first was published.
	box.Await(t, "two rounds of queries", func(context.Context) (bool, error) { return asked.Load() >= 2, nil })
	create := func(name string, change func(*st.PodWrapper)) {
		pod := st.MakePod().Name(name).Namespace("default").SchedulerName(profile).Req(map[v1.ResourceName]string{"cpu": "1", "memory": "1Gi"})
		change(pod)
		box.Create(t, pod.Obj())
	}
	bound := func(name, node string) {
		t.Helper()
		box.Bound(t, name, node)
	}
	told := func(name, text string) {
		t.Helper()
		box.Told(t, name, text)
	}

	create("quick", func(p *st.PodWrapper) { p.Annotation("berth.dev/slo-latency-ms", "100") })
	bound("quick", "fast-0")
	// A gang is dry-run with the same scores.
	for _, name := range []string{"pair-0", "pair-1"} {
		create(name, func(p *st.PodWrapper) {
			p.Label("pod-group.scheduling.sigs.k8s.io/name", "pair").Label("pod-group.scheduling.sigs.k8s.io/min-available", "2").
				Annotation("berth.dev/slo-latency-ms", "100")
		})
	}
	bound("pair-0", "fast-0")
	bound("pair-1", "fast-0")
	create("unreadable", func(p *st.PodWrapper) { p.Annotation("berth.dev/slo-throughput", "lots") })
	told("unreadable", `pod annotation berth.dev/slo-throughput: "lots" is not a decimal number`)
	create("unclassed", func(p *st.PodWrapper) { p.Label("berth.dev/sla-class", "gold") })
	told("unclassed", `pod label berth.dev/sla-class: "gold" is not one of the classes open to pods of PriorityClass "": "interactive", "batch"`)
	patch := []byte(`{"metadata":{"labels":{"berth.dev/sla-class":"batch"}}}`)
	if _, err := box.Client.CoreV1().Pods("default").Patch(t.Context(), "unclassed", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	bound("unclassed", "")

	inQueue := func(class string) func(p *st.PodWrapper) {
		return func(p *st.PodWrapper) {
			p.NodeSelector(map[string]string{"narrow": "yes"}).Annotation("berth.dev/sla-class", class)
		}
	}
	create("first", inQueue("interactive"))
	bound("first", "narrow-0")
	create("older", inQueue("batch"))
	told("older", "Insufficient cpu")
	create("younger", inQueue("interactive"))
	told("younger", "Insufficient cpu")
	refused := time.Now()
	told("older", "the pod waits for longer than the 5 seconds that its class batch allows (berth.dev/sla-class)")
	// The queue puts a pod that did not fit off, for two seconds if that was the second time. If only one of them could be tried, it
	// would be bound out of turn.
	box.Await(t, "both to be put off no longer", func(context.Context) (bool, error) { return time.Since(refused) >= 3*time.Second, nil })
	box.Remove(t, "first")
	bound("younger", "narrow-0")

	box.KillScheduler(t)
	box.Remove(t, "younger")
	bound("older", "narrow-0")
	if n, err := box.Events(t.Context(), "younger", "the pod waits for longer"); n != 0 || err != nil {
		t.Errorf("%d events about a timeout of a class that has none, %v", n, err)
	}
}
