package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/hack/bench/live"
	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/schedulerconfig"
)

func writeFile(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// enabledOf are the plugins of ours that a contender's profile enables, and its queue sort.
func enabledOf(t *testing.T, c live.Contender) (ours []string, queueSort string) {
	t.Helper()
	loaded, err := schedulerconfig.Load(writeFile(t, "config.yaml", c.Config))
	if err != nil {
		t.Fatalf("the configuration of %s cannot be used: %v", c.Name, err)
	}
	for _, p := range loaded.Component.Profiles {
		if p.SchedulerName != c.Profile {
			continue
		}
		queueSort = "PrioritySort"
		if q := p.Plugins.QueueSort.Enabled; len(q) > 0 {
			queueSort = q[0].Name
		}
		for _, enabled := range p.Plugins.MultiPoint.Enabled {
			if slices.Contains([]string{"GPUAware", "CostOptimized", "Coscheduling"}, enabled.Name) {
				ours = append(ours, enabled.Name)
			}
		}
		slices.Sort(ours)
		return ours, queueSort
	}
	t.Fatalf("the configuration of %s has no profile %s", c.Name, c.Profile)
	return nil, ""
}

func TestContendersRunWhatTheirNamesSay(t *testing.T) {
	t.Parallel()
	type shape struct {
		Ours      []string
		QueueSort string
	}
	want := map[string]shape{
		"stock":                {nil, "PrioritySort"},
		"stock-no-spread":      {nil, "PrioritySort"},
		"stock-most-allocated": {nil, "PrioritySort"},
		"berth":                {[]string{"Coscheduling", "CostOptimized", "GPUAware"}, "Coscheduling"},
		"gpu-aware":            {[]string{"Coscheduling", "GPUAware"}, "Coscheduling"},
	}
	got := map[string]shape{}
	for _, r := range recipes {
		c := r.contender()
		ours, queueSort := enabledOf(t, c)
		got[c.Name] = shape{ours, queueSort}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plugins of contenders (-want +got):\n%s", diff)
	}
}

func TestStockVariantsDifferInOneArgument(t *testing.T) {
	t.Parallel()
	for i, want := range []string{"", "defaultingType: List", "type: MostAllocated"} {
		text := string(recipes[i].contender().Config)
		if strings.Contains(text, "pluginConfig") != (want != "") || !strings.Contains(text, want) {
			t.Errorf("contender %s should have %q and nothing else:\n%s", recipes[i].name, want, text)
		}
	}
}

func TestInstalledGatesAreThoseOfTheManifests(t *testing.T) {
	t.Parallel()
	deployment, err := manifests.Files.ReadFile("base/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`--feature-gates=(\S+)`).FindSubmatch(deployment)
	if found == nil {
		t.Fatal("the deployment has no feature gates")
	}
	if diff := cmp.Diff(live.InstalledGates, strings.Split(string(found[1]), ",")); diff != "" {
		t.Errorf("feature gates (-measured +installed):\n%s", diff)
	}
}
