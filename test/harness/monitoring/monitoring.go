// Package monitoring reads the alert rules, the dashboards and the reference of metrics for tests, which run below the
// repository's folder.
package monitoring

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/require"
)

// Rule is an alert.
type Rule struct {
	Alert, Expr string
	Labels      map[string]string
	Annotations map[string]string
}

// Alerts are those of the rules, in the repository at root.
func Alerts(t *testing.T, root string) []Rule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "manifests", "monitoring", "rules.yaml"))
	require.NoError(t, err)
	var file struct{ Groups []struct{ Rules []Rule } }
	require.NoError(t, yaml.Unmarshal(text, &file))
	var all []Rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// Expressions are the queries of all dashboards, by panel.
func Expressions(t *testing.T, root string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "manifests", "monitoring", "dashboards", "*.json"))
	if err != nil || len(files) < 4 {
		t.Fatalf("found the dashboards %q (%v), want 4 or more", files, err)
	}
	all := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
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

// named finds the metrics of Berth and of kube-scheduler in a query.
var named = regexp.MustCompile(`\b(?:berth|scheduler)_[a-z_]+`)

// family is the name of a metric without what the series of histograms add to it.
func family(series string) string {
	return regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(series, "")
}

// Used returns the labels by which rules and dashboards tell the series of each metric apart.
func Used(t *testing.T, root string) map[string]map[string]bool {
	t.Helper()
	queries := slices.Collect(maps.Values(Expressions(t, root)))
	for _, a := range Alerts(t, root) {
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

// Reference returns the labels of each metric of docs/internals/metrics.md.
func Reference(t *testing.T, root string) map[string][]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "internals", "metrics.md"))
	require.NoError(t, err)
	all := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| ([^|]*) \\|").FindAllStringSubmatch(string(page), -1) {
		all[row[1]] = []string{}
		for _, label := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[3], -1) {
			all[row[1]] = append(all[row[1]], label[1])
		}
	}
	return all
}
