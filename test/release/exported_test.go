package release_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/monitoring"
	"berth.dev/berth/test/harness/require"
)

// meteredNodes are those that Prometheus knows.
const meteredNodes = `
- name: metered
  count: 2
  labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.memory: "81920", nvidia.com/gpu.count: "8", topology.kubernetes.io/rack: r1}
  annotations: {berth.dev/price-per-hour: "27.45"}
  allocatable: {cpu: "96", memory: 512Gi, nvidia.com/gpu: "8"}
`

// measured give a value to each metric that has none in an empty cluster.
const measured = `apiVersion: berth.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: tools}
spec: {licenses: [{name: matlab, count: 2}]}
---
apiVersion: berth.dev/v1alpha1
kind: IPPool
metadata: {name: pool}
spec: {subnets: [{ranges: [10.0.0.10-10.0.0.20]}]}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: gang}
spec: {minMember: 2}
---
apiVersion: batch/v1
kind: Job
metadata: {name: gang}
spec:
  completions: 2
  parallelism: 2
  template:
    metadata:
      labels: {scheduling.x-k8s.io/pod-group: gang}
      annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}
    spec:
      schedulerName: berth-scheduler
      restartPolicy: Never
      containers:
        - name: worker
          image: registry.k8s.io/pause:3.10
          resources: {requests: {nvidia.com/gpu: 4}, limits: {nvidia.com/gpu: 4}}
---
apiVersion: v1
kind: Pod
metadata:
  name: late
  labels: {berth.dev/sla-class: hurried}
spec:
  schedulerName: berth-scheduler
  nodeSelector: {nowhere: "true"}
  containers: [{name: main, image: registry.k8s.io/pause:3.10}]
`

// exporter answers all queries as Prometheus does, with the use of a GPU of each node and the time of that sample.
func exporter(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	now := metav1.Now().Unix()
	var samples []string
	for _, node := range []string{"metered-0", "metered-1"} {
		samples = append(samples,
			fmt.Sprintf(`{"metric":{"node":%q,"gpu":"0","berth_reading":"engine"},"value":[%d,"0.5"]}`, node, now),
			fmt.Sprintf(`{"metric":{"node":%q,"berth_reading":"time"},"value":[%d,"%d"]}`, node, now, now))
	}
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(samples, ","))
}

// measuring is the shipped configuration, with signals and with a service level.
func measuring(t *testing.T, server string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(manifests(t), "base", "scheduler-config.yaml"))
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, yaml.Unmarshal(text, &config))
	for _, profile := range config["profiles"].([]any) {
		p := profile.(map[string]any)
		p["pluginConfig"] = append(p["pluginConfig"].([]any),
			map[string]any{"name": "Coscheduling", "args": map[string]any{
				"sla": map[string]any{"classes": []any{map[string]any{"name": "hurried", "deadlineSeconds": 1,
					"timeoutSeconds": 1}}}}},
			map[string]any{"name": "GPUAware",
				"args": map[string]any{"signals": map[string]any{"prometheus": map[string]any{"url": server, "interval": "5s"}}}})
	}
	changed, err := yaml.Marshal(config)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, changed, 0o600))
	return file
}

// rare are the metrics that have a value only after something that this test does not bring about.
var rare = map[string]bool{
	"berth_signal_query_failures_total": true,
	"scheduler_preemption_victims":      true,
	"berth_field_pruned":                true,
}

// testExportedMetrics asks the scheduler for what rules and dashboards use, and holds all that it exports of Berth
// against the reference.
func testExportedMetrics(t *testing.T, w *guarded) {
	files := fstest.MapFS{"objects.yaml": {Data: []byte(measured)}}
	if _, err := sandbox.CreateFiles(t.Context(), w.Config, metav1.NamespaceDefault, files, "objects.yaml"); err != nil {
		t.Fatal(err)
	}
	config, err := w.SchedulerConfig()
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	known, shown := monitoring.Reference(t, box.Root(t)), monitoring.Used(t, box.Root(t))
	shown["leader_election_master_status"] = nil // which tells the replica whose queue counts
	var missing, unlisted []string
	var unread error
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 4*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			var text []byte
			// A scheduler that is busy may leave a request without an answer.
			if text, unread = client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx); unread != nil {
				return false, nil //nolint:nilerr // the test tells it if it stays
			}
			parser := expfmt.NewTextParser(model.UTF8Validation)
			exported, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
			if err != nil {
				return false, err
			}
			missing, unlisted = nil, nil
			for name, family := range exported {
				if labels, listed := known[name]; strings.HasPrefix(name, "berth_") && (!listed || !has(family, labels)) {
					unlisted = append(unlisted, name)
				}
			}
			for name, labels := range shown {
				if rare[name] || strings.HasPrefix(name, "berth_extender_") || strings.HasPrefix(name, "berth_node_agent_") {
					continue
				}
				want := known[name]
				for label := range labels {
					if label != "le" && strings.HasPrefix(name, "scheduler_") {
						want = append(want, label)
					}
				}
				if !has(exported[name], want) {
					missing = append(missing, name)
				}
			}
			slices.Sort(missing)
			return len(missing) == 0, nil
		})
	if err = errors.Join(err, unread); err != nil {
		t.Errorf("the scheduler does not export %q with the labels that it should: %v", missing, err)
	}
	slices.Sort(unlisted)
	if len(unlisted) > 0 {
		t.Errorf("docs/internals/metrics.md has no row for %q, or other labels", unlisted)
	}
}

// has tells whether a metric is exported with labels.
func has(exported *dto.MetricFamily, labels []string) bool {
	if exported == nil || len(exported.Metric) == 0 {
		return false
	}
	for _, label := range labels {
		if !slices.ContainsFunc(exported.Metric[0].Label, func(pair *dto.LabelPair) bool { return pair.GetName() == label }) {
			return false
		}
	}
	return true
}
