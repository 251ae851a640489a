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
	list, err := makeContenders(recipes, nil)
	if err != nil {
		t.Fatal(err)
	}
	type shape struct {
		Ours      []string
		QueueSort string
	}
	want := map[string]shape{
		"stock":                {nil, "PrioritySort"},
		"stock-no-spread":      {nil, "PrioritySort"},
		"stock-most-allocated": {nil, "PrioritySort"},
		"berth":                {[]string{"Coscheduling", "CostOptimized", "GPUAware"}, "Coscheduling"},
		"berth-no-gpu":         {[]string{"Coscheduling", "CostOptimized"}, "Coscheduling"},
		"berth-no-cost":        {[]string{"Coscheduling", "GPUAware"}, "Coscheduling"},
		"berth-no-gangs":       {[]string{"CostOptimized", "GPUAware"}, "PrioritySort"},
		"gpu-aware":            {[]string{"Coscheduling", "GPUAware"}, "Coscheduling"},
	}
	got := map[string]shape{}
	for _, c := range list {
		ours, queueSort := enabledOf(t, c)
		got[c.Name] = shape{ours, queueSort}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plugins of contenders (-want +got):\n%s", diff)
	}
}

func TestStockVariantsDifferInOneArgument(t *testing.T) {
	t.Parallel()
	list, err := makeContenders(recipes[:3], nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "defaultingType: List", "type: MostAllocated"} {
		text := string(list[i].Config)
		if strings.Contains(text, "pluginConfig") != (want != "") || !strings.Contains(text, want) {
			t.Errorf("contender %s should have %q and nothing else:\n%s", list[i].Name, want, text)
		}
	}
}

func TestRemovePlugin(t *testing.T) {
	t.Parallel()
	const config = `
percentageOfNodesToScore: 100
profiles:
- schedulerName: a
  plugins:
    queueSort: {disabled: [{name: "*"}], enabled: [{name: Gone}]}
    score: {disabled: [{name: Gone}], enabled: [{name: Kept, weight: 5}]}
    multiPoint: {enabled: [{name: Gone}, {name: Kept, weight: 20}]}
  pluginConfig: [{name: Gone, args: {gone: 1}}, {name: Kept, args: {kept: 2}}]
- schedulerName: b
`
	got, err := removePlugin([]byte(config), "Gone")
	if err != nil {
		t.Fatal(err)
	}
	const want = `percentageOfNodesToScore: 100
profiles:
- pluginConfig:
  - args:
      kept: 2
    name: Kept
  plugins:
    multiPoint:
      enabled:
      - name: Kept
        weight: 20
    score:
      disabled: []
      enabled:
      - name: Kept
        weight: 5
  schedulerName: a
- schedulerName: b
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if _, err := removePlugin([]byte(config), "Absent"); err == nil || !strings.Contains(err.Error(), "Absent") {
		t.Errorf("got error %v, want one that names a plugin that no profile has", err)
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

func TestContenderOfAFile(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "mine.yaml", []byte("profiles: [{schedulerName: one}, {schedulerName: two}]"))
	c, err := fileContender(path + "=two")
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "mine:two" || c.Profile != "two" {
		t.Errorf("contender %+v, want mine:two with profile two", c)
	}
	if _, err := makeContenders(nil, []live.Contender{c, c}); err == nil ||
		!strings.Contains(err.Error(), "mine:two is named twice") {
		t.Errorf("got error %v, want one that refuses the same file twice", err)
	}
	if _, err := makeContenders(nil, nil); err == nil || !strings.Contains(err.Error(), "--contenders: name one") {
		t.Errorf("got error %v, want one that asks for a contender", err)
	}
	for text, wantErr := range map[string]string{
		path + "=three": `no profile "three"; it has one, two`,
		path:            "want FILE=PROFILE",
		"absent.yaml=x": "absent.yaml",
	} {
		if _, err := fileContender(text); err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s: got error %v, want one with %q", text, err, wantErr)
		}
	}
}
