// Package monitoring_test checks alert rules and dashboards: with promtool, and against the metrics that there are.
package monitoring_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

type rule struct {
	Alert, Expr string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile("rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// expressions are the queries of all dashboards, by panel.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("dashboards/*.json")
	if err != nil || len(files) < 4 {
		t.Fatalf("found the dashboards %q (%v), want 4 or more", files, err)
	}
	all := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var dashboard struct {
			UID    string
			Panels []struct {
				Title   string
				Targets []struct{ RefID, Expr string }
			}
		}
		if err := json.Unmarshal(text, &dashboard); err != nil {
			t.Fatalf("parsing %s: %v", file, err)
		}
		if dashboard.UID+".json" != filepath.Base(file) {
			t.Errorf("%s has the uid %q", file, dashboard.UID)
		}
		for _, panel := range dashboard.Panels {
			if len(panel.Targets) == 0 {
				t.Errorf("%s: the panel %q shows nothing", file, panel.Title)
			}
			for _, target := range panel.Targets {
				all[dashboard.UID+"/"+panel.Title+"/"+target.RefID] = target.Expr
			}
		}
	}
	return all
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("NOTICE: promtool is not in PATH, so rules and dashboards are not checked with it; Debian: apt-get install prometheus")
	}
	if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestTheAlertsFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", "rules.yaml")
	promtool(t, "test", "rules", "rules_test.yaml")
	tested, err := os.ReadFile("rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range alerts(t) {
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
	for _, expr := range expressions(t) {
		rules = append(rules, recording{"query", strings.ReplaceAll(expr, "$profile", "profile")})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboards", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", "--lint=none", file)
}

func TestEachAlertHasARunbook(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range alerts(t) {
		names = append(names, a.Alert)
		if url := a.Annotations["runbook_url"]; !strings.HasSuffix(url, "/alerts#"+strings.ToLower(a.Alert)) {
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
		t.Errorf("docs/alerts.md has sections for %q, want them for %q, in this order", sections, names)
	}
}
