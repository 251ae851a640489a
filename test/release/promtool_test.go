package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/monitoring"
	"berth.dev/berth/test/harness/require"
)

func promtool(t *testing.T, args ...string) {
	t.Helper()
	program := box.Installed(t, "promtool", "prometheus")
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestTheAlertsFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(manifests(t), "monitoring")
	promtool(t, "check", "rules", filepath.Join(folder, "rules.yaml"))
	promtool(t, "test", "rules", filepath.Join(folder, "rules_test.yaml"))
	tested, err := os.ReadFile(filepath.Join(folder, "rules_test.yaml"))
	require.NoError(t, err)
	for _, a := range monitoring.Alerts(t, box.Root(t)) {
		if !strings.Contains(string(tested), `alertname="`+a.Alert+`"`) {
			t.Errorf("rules_test.yaml does not test %s", a.Alert)
		}
	}
}

func TestTheQueriesOfTheDashboardsAreQueries(t *testing.T) {
	t.Parallel()
	// promtool checks the expressions of rules, so each query becomes one.
	type recording struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []recording
	for _, expr := range monitoring.Expressions(t, box.Root(t)) {
		rules = append(rules, recording{"query", strings.ReplaceAll(expr, "$profile", "profile")})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboards", "rules": rules}}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	promtool(t, "check", "rules", "--lint=none", file)
}
