// Package monitoring_test compares alert rules and dashboards with their pages and with the reference of metrics.
package monitoring_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/test/harness/monitoring"
	"berth.dev/berth/test/harness/require"
)

// root is the folder of the repository.
const root = "../.."

func TestEachAlertHasARunbook(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(root + "/docs/operate.md")
	require.NoError(t, err)
	var names []string
	for _, a := range monitoring.Alerts(t, root) {
		names = append(names, a.Alert)
		if url := a.Annotations["runbook_url"]; !strings.HasSuffix(url, "/operate#"+strings.ToLower(a.Alert)) {
			t.Errorf("%s has the runbook %q", a.Alert, url)
		}
		if !slices.Contains([]string{"info", "warning", "critical"}, a.Labels["severity"]) {
			t.Errorf("%s has the severity %q, want info, warning or critical", a.Alert, a.Labels["severity"])
		}
		for _, annotation := range []string{"summary", "description"} {
			if a.Annotations[annotation] == "" {
				t.Errorf("%s has no %s", a.Alert, annotation)
			}
		}
	}
	var sections []string
	for _, heading := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(string(page), -1) {
		sections = append(sections, heading[1])
	}
	if !slices.Equal(sections, names) {
		t.Errorf("docs/operate.md has sections for %q, want them for %q, in this order", sections, names)
	}
}

func TestRulesAndDashboardsUseMetricsOfTheReference(t *testing.T) {
	t.Parallel()
	known := monitoring.Reference(t, root)
	for name, labels := range monitoring.Used(t, root) {
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
	shown := monitoring.Used(t, root)
	for name := range known {
		if shown[name] == nil && !strings.HasPrefix(name, "berth_node_agent_") {
			t.Errorf("the metric %s is on no dashboard and in no alert", name)
		}
	}
}

// Standbys and extenders know the cluster, too, so a sum of what they export, or an alert for each, counts it several
// times.
func TestWhatEachReplicaExportsOfTheClusterIsCountedOnce(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(root + "/docs/internals/metrics.md")
	require.NoError(t, err)
	gauges := regexp.MustCompile("(?m)^\\| `(berth_\\w+)` \\| gauge \\|").FindAllStringSubmatch(string(page), -1)
	if len(gauges) < 15 {
		t.Fatalf("found %d gauges in the reference, want 15 or more", len(gauges))
	}
	queries := monitoring.Expressions(t, root)
	for _, a := range monitoring.Alerts(t, root) {
		queries[a.Alert] = a.Expr
	}
	for _, gauge := range gauges {
		if strings.HasPrefix(gauge[1], "berth_node_agent_") {
			continue // of one node
		}
		for where, query := range queries {
			once := regexp.MustCompile(`(?:max|min)(?: by \([^)]*\))? ?\(`+gauge[1]+`\b`).ReplaceAllString(query, "")
			if strings.Contains(once, gauge[1]) {
				t.Errorf("%s does not take the largest or smallest %s of the replicas: %s", where, gauge[1], query)
			}
		}
	}
}
