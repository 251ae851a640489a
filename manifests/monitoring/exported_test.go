package monitoring_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
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
)

// named finds the metrics of Berth and of kube-scheduler in a query.
var named = regexp.MustCompile(`\b(?:berth|scheduler)_[a-z_]+`)

// family is the name of a metric without what the series of histograms add to it.
func family(series string) string {
	return regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(series, "")
}

// used returns the labels by which rules and dashboards tell the series of each metric apart.
func used(t *testing.T) map[string]map[string]bool {
	t.Helper()
	queries := slices.Collect(maps.Values(expressions(t)))
	for _, a := range alerts(t) {
		queries = append(queries, a.Expr)
	}
	all := map[string]map[string]bool{}
	for _, query := range queries {
		grouped := map[string]bool{}
		for _, by := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(query, -1) {
			for label := range strings.SplitSeq(by[1], ",") {
				grouped[strings.TrimSpace(label)] = true
			}
		}
		for _, name := range named.FindAllString(query, -1) {
			if all[family(name)] == nil {
				all[family(name)] = map[string]bool{}
			}
			maps.Copy(all[family(name)], grouped)
		}
		for _, selector := range regexp.MustCompile(`((?:berth|scheduler)_[a-z_]+)\{([^}]*)\}`).FindAllStringSubmatch(query, -1) {
			for _, matcher := range regexp.MustCompile(`(\w+)(?:=|!=)`).FindAllStringSubmatch(selector[2], -1) {
				all[family(selector[1])][matcher[1]] = true
			}
		}
	}
	return all
}

// reference returns the labels of each metric of docs/metrics.md.
func reference(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| ([^|]*) \\|").FindAllStringSubmatch(string(page), -1) {
		all[row[1]] = []string{}
		for _, label := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[3], -1) {
			all[row[1]] = append(all[row[1]], label[1])
		}
	}
	return all
}

func TestRulesAndDashboardsUseMetricsOfTheReference(t *testing.T) {
	t.Parallel()
	known := reference(t)
	for name, labels := range used(t) {
		if strings.HasPrefix(name, "scheduler_") {
			continue // the next test asks the scheduler
		}
		if known[name] == nil {
			t.Errorf("there is no metric %s", name)
			continue
		}
		for label := range labels {
			if label != "le" && !slices.Contains(known[name], label) {
				t.Errorf("the metric %s has no label %s, it has %q", name, label, known[name])
			}
		}
	}
	shown := used(t)
	for name := range known {
		if shown[name] == nil && !strings.HasPrefix(name, "berth_node_agent_") && name != "berth_signal_entries" {
			t.Errorf("the metric %s is on no dashboard and in no alert", name)
		}
	}
}

// Standbys and extenders know the cluster, too, so a sum of what they export, or an alert for each, counts it several times.
func TestWhatEachReplicaExportsOfTheClusterIsCountedOnce(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	gauges := regexp.MustCompile("(?m)^\\| `(berth_\\w+)` \\| gauge \\|").FindAllStringSubmatch(string(page), -1)
	if len(gauges) < 20 {
		t.Fatalf("found %d gauges in the reference, want 20 or more", len(gauges))
	}
	queries := expressions(t)
	for _, a := range alerts(t) {
		queries[a.Alert] = a.Expr
	}
	for _, gauge := range gauges {
		if strings.HasPrefix(gauge[1], "berth_config_") || strings.HasPrefix(gauge[1], "berth_node_agent_") {
			continue // of one replica, of one node
		}
		for where, query := range queries {
			once := regexp.MustCompile(`(?:max|min)(?: by \([^)]*\))? ?\(`+gauge[1]+`\b`).ReplaceAllString(query, "")
			if strings.Contains(once, gauge[1]) {
				t.Errorf("%s does not take the largest or smallest %s of the replicas: %s", where, gauge[1], query)
			}
		}
	}
}

const nodes = `shapes:
- name: a100
  count: 2
  labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.memory: "81920", nvidia.com/gpu.count: "8", topology.kubernetes.io/rack: r1}
  annotations: {berth.dev/price-per-hour: "27.45"}
  allocatable: {cpu: "96", memory: 512Gi, pods: "110", nvidia.com/gpu: "8"}
`

// objects give a value to each metric that has none in an empty cluster.
const objects = `apiVersion: berth.dev/v1alpha1
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
      annotations: {berth.dev/near: "job-name=gang", pod-complete.stage.kwok.x-k8s.io/delay: 1h}
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
	for _, node := range []string{"a100-0", "a100-1"} {
		samples = append(samples,
			fmt.Sprintf(`{"metric":{"node":%q,"gpu":"0","berth_reading":"engine"},"value":[%d,"0.5"]}`, node, now),
			fmt.Sprintf(`{"metric":{"node":%q,"berth_reading":"engine_time"},"value":[%d,"%d"]}`, node, now, now))
	}
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(samples, ","))
}

// configuration is the shipped one, with signals and with a service level.
func configuration(t *testing.T, server string) string {
	t.Helper()
	text, err := os.ReadFile("../base/scheduler-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	for _, profile := range config["profiles"].([]any) {
		p := profile.(map[string]any)
		p["pluginConfig"] = append(p["pluginConfig"].([]any),
			map[string]any{"name": "Coscheduling", "args": map[string]any{
				"sla": map[string]any{"classes": []any{map[string]any{"name": "hurried", "deadlineSeconds": 1, "timeoutSeconds": 1}}}}},
			map[string]any{"name": "GPUAware", "args": map[string]any{"signals": map[string]any{"prometheus": map[string]any{"url": server, "interval": "5s"}}}})
	}
	changed, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// rare are the metrics that have a value only after something that this test does not bring about.
var rare = map[string]bool{
	"berth_signal_query_failures_total":  true,
	"berth_signal_dropped_samples_total": true,
	"scheduler_preemption_victims":       true,
	"berth_config_reload_total":          true,
	"berth_right_missing":                true,
	"berth_field_pruned":                 true,
}

func TestTheRunningSchedulerExportsWhatRulesAndDashboardsUse(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(exporter))
	t.Cleanup(server.Close)
	box := box.Start(t, nodes, sandbox.Options{SchedulerConfig: configuration(t, server.URL)})
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "objects.yaml"), []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sandbox.CreateObjects(t.Context(), box.Config, metav1.NamespaceDefault, os.DirFS(folder), "objects.yaml"); err != nil {
		t.Fatal(err)
	}
	config, err := box.SchedulerConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	known, shown := reference(t), used(t)
	shown["leader_election_master_status"] = nil // which tells the replica whose queue counts
	var missing []string
	var unread error
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 4*time.Minute, true, func(ctx context.Context) (bool, error) {
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
		missing = nil
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
