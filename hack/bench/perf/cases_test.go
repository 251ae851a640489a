package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const upstreamText = `
- name: Basic
  defaultPodTemplatePath: ../templates/pod-default.yaml
  featureGates: {Of: true}
  workloads:
  - name: 5Nodes/small
    labels: [integration-test, short]
    params: {initNodes: 5}
  - name: 5000Nodes
    labels: [performance]
    threshold: 680
    params: {initNodes: 5000}
- name: Own
  schedulerConfigPath: scheduler-config.yaml
  workloads:
  - {name: 5Nodes}
`

// upstreamCases is a folder with the cases above, in misc and in podgroup/tas.
func upstreamCases(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{"misc", "podgroup/tas"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, folder, "performance-config.yaml"), []byte(upstreamText),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// caseNamed reads the one case of a name.
func caseNamed(t *testing.T, name string) *perfCase {
	t.Helper()
	cases, err := readCases(upstreamCases(t), name)
	if err != nil || len(cases) != 1 {
		t.Fatalf("%s: got %d cases and error %v", name, len(cases), err)
	}
	return cases[0]
}

func TestCasesByPattern(t *testing.T) {
	t.Parallel()
	upstream := upstreamCases(t)
	for pattern, want := range map[string][]string{
		"misc/Basic/5000Nodes":         {"misc/Basic/5000Nodes"},
		"misc/Basic/5Nodes/small":      {"misc/Basic/5Nodes/small"},
		"podgroup/tas/Basic/5000Nodes": {"podgroup/tas/Basic/5000Nodes"},
		"*/*/5000Nodes":                {"misc/Basic/5000Nodes"},
		"misc/*/5*Nodes":               {"misc/Basic/5000Nodes", "misc/Own/5Nodes"},
		"misc/Basic/*/*":               {"misc/Basic/5Nodes/small"},
		"misc/*/7Nodes":                nil,
		"misc/Basic":                   nil,
		"../Basic/5Nodes":              nil,
		"misc/[/5Nodes":                nil,
	} {
		var got []string
		cases, err := readCases(upstream, pattern)
		for _, c := range cases {
			got = append(got, c.name)
			if !strings.HasPrefix(c.name, strings.TrimPrefix(c.topic, upstream+"/")+"/") {
				t.Errorf("%s is in the folder %s", c.name, c.topic)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != nil) {
			t.Errorf("%s: error %v (-want +got):\n%s", pattern, err, diff)
		}
	}
}

func TestACaseHasOneWorkload(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, of  string
		contender contender
		want      string
	}{
		{"stock has upstream's case with one workload, without its threshold", "misc/Basic/5000Nodes", stock, `
- name: Basic
  defaultPodTemplatePath: ../templates/pod-default.yaml
  featureGates: {Of: true}
  workloads:
  - {name: 5000Nodes, labels: [performance], params: {initNodes: 5000}}`},
		{"berth has its configuration and its gates besides", "misc/Basic/5Nodes/small", berth, `
- name: Basic
  defaultPodTemplatePath: ../templates/pod-default.yaml
  featureGates: {Of: true, NominatedNodeNameForExpectation: false}
  schedulerConfigPath: /config.yaml
  workloads:
  - {name: 5Nodes/small, labels: [performance], params: {initNodes: 5}}`},
		{"stock is measured with the configuration of the case", "misc/Own/5Nodes", stock, `
- name: Own
  schedulerConfigPath: scheduler-config.yaml
  workloads:
  - {name: 5Nodes, labels: [performance]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text, err := caseNamed(t, tt.of).file(tt.contender, "/config.yaml")
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := yaml.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(tt.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
		})
	}
}

func TestThresholdIsKeptForTheTable(t *testing.T) {
	t.Parallel()
	for workload, want := range map[string]float64{"5000Nodes": 680, "5Nodes/small": 0} {
		if c := caseNamed(t, "misc/Basic/"+workload); c.threshold != want {
			t.Errorf("workload %s: got %+v, want threshold %g", workload, c, want)
		}
	}
}

func TestACaseWithAConfigurationOfItsOwnIsForStock(t *testing.T) {
	t.Parallel()
	_, err := caseNamed(t, "misc/Own/5Nodes").file(berth, "/config.yaml")
	if err == nil || !strings.Contains(err.Error(), "a scheduler configuration of its own") {
		t.Errorf("got error %v, want one that says why", err)
	}
}

// A later version of Kubernetes may rename its cases.
func TestDefaultCasesAreUpstreams(t *testing.T) {
	t.Parallel()
	upstream, err := findUpstream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range defaultCases {
		if _, err := readCases(casesOf(upstream), name); err != nil {
			t.Error(err)
		}
	}
}

func TestBerthConfigHasItsProfileUnderUpstreamsName(t *testing.T) {
	t.Parallel()
	text, err := berthConfig()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		PercentageOfNodesToScore int `json:"percentageOfNodesToScore"`
		Profiles                 []struct {
			SchedulerName string `json:"schedulerName"`
			Plugins       struct {
				MultiPoint struct {
					Enabled []struct {
						Name string `json:"name"`
					} `json:"enabled"`
				} `json:"multiPoint"`
			} `json:"plugins"`
		} `json:"profiles"`
	}
	if err := yaml.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Profiles) != 1 || got.Profiles[0].SchedulerName != upstreamProfile || got.PercentageOfNodesToScore != 100 {
		t.Fatalf("got %+v, want one profile %s, and all nodes scored", got, upstreamProfile)
	}
	var plugins []string
	for _, p := range got.Profiles[0].Plugins.MultiPoint.Enabled {
		plugins = append(plugins, p.Name)
	}
	for _, want := range []string{"GPUAware", "CostOptimized", "Coscheduling"} {
		if !strings.Contains(strings.Join(plugins, " "), want) {
			t.Errorf("the profile has plugins %v, want %s among them", plugins, want)
		}
	}
}
