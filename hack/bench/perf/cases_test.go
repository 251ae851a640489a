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

func TestCasesByPattern(t *testing.T) {
	t.Parallel()
	upstream := t.TempDir()
	if err := os.Mkdir(filepath.Join(upstream, "misc"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(upstream, "misc", "performance-config.yaml"), []byte(upstreamText),
		0o600); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string][]string{
		"misc/Basic/5000Nodes": {"misc/Basic/5000Nodes"},
		"*/*/5000Nodes":        {"misc/Basic/5000Nodes"},
		"misc/*/5*Nodes":       {"misc/Basic/5000Nodes", "misc/Own/5Nodes"},
		"misc/Basic/*/*":       {"misc/Basic/5Nodes/small"},
		"misc/*/7Nodes":        nil,
		"misc/[/5Nodes":        nil,
	} {
		var got []string
		cases, err := readCases(upstream, pattern)
		for _, c := range cases {
			got = append(got, c.name)
		}
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != nil) {
			t.Errorf("%s: error %v (-want +got):\n%s", pattern, err, diff)
		}
	}
}

func TestPick(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, of, workload string
		contender          contender
		want               string
	}{
		{"stock has upstream's case with one workload, without its threshold", "Basic", "5000Nodes", stock, `
- name: Basic
  defaultPodTemplatePath: ../templates/pod-default.yaml
  featureGates: {Of: true}
  workloads:
  - {name: 5000Nodes, labels: [performance], params: {initNodes: 5000}}`},
		{"berth has its configuration and its gates besides", "Basic", "5Nodes/small", berth, `
- name: Basic
  defaultPodTemplatePath: ../templates/pod-default.yaml
  featureGates: {Of: true, NominatedNodeNameForExpectation: false}
  schedulerConfigPath: /config.yaml
  workloads:
  - {name: 5Nodes/small, labels: [performance], params: {initNodes: 5}}`},
		{"stock is measured with the configuration of the case", "Own", "5Nodes", stock, `
- name: Own
  schedulerConfigPath: scheduler-config.yaml
  workloads:
  - {name: 5Nodes, labels: [performance]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := pick([]byte(upstreamText), tt.of, tt.workload)
			if err != nil {
				t.Fatal(err)
			}
			text, err := c.file(tt.contender, "/config.yaml")
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

func TestAFolderMayBeInAnotherOne(t *testing.T) {
	t.Parallel()
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
	for name, want := range map[string]string{"misc/Basic/5Nodes/small": "misc",
		"podgroup/tas/Basic/5000Nodes": "podgroup/tas"} {
		if c, err := readCase(dir, name); err != nil || c.topic != filepath.Join(dir, want) || c.name != name {
			t.Errorf("%s: got %+v and error %v, want folder %s", name, c, err, want)
		}
	}
	if _, err := readCase(dir, "podgroup/Basic/5000Nodes"); err == nil ||
		!strings.Contains(err.Error(), "podgroup has no cases") {
		t.Errorf("error %v for a folder without cases", err)
	}
}

func TestThresholdIsKeptForTheTable(t *testing.T) {
	t.Parallel()
	for workload, want := range map[string]float64{"5000Nodes": 680, "5Nodes/small": 0} {
		if c, err := pick([]byte(upstreamText), "Basic", workload); err != nil || c.threshold != want {
			t.Errorf("workload %s: got %+v and error %v, want threshold %g", workload, c, err, want)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	own, err := pick([]byte(upstreamText), "Own", "5Nodes")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, wantErr string
		do            func() error
	}{
		{"a case that upstream does not have", `"Other" is unknown; want one of Basic, Own`, func() error {
			_, err := pick([]byte(upstreamText), "Other", "5Nodes")
			return err
		}},
		{"a workload that the case does not have", `case Basic: "7Nodes" is unknown; want one of 5Nodes/small, 5000Nodes`, func() error {
			_, err := pick([]byte(upstreamText), "Basic", "7Nodes")
			return err
		}},
		{"a name without a workload", "want FOLDER/CASE/WORKLOAD", func() error {
			_, err := readCase(t.TempDir(), "misc/Basic")
			return err
		}},
		{"a folder above upstream's", "want FOLDER/CASE/WORKLOAD", func() error {
			_, err := readCase(t.TempDir(), "../Basic/5Nodes")
			return err
		}},
		{"berth in a case with a configuration of its own", "a scheduler configuration of its own", func() error {
			_, err := own.file(berth, "/config.yaml")
			return err
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := tt.do(); err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("got error %v, want one with %q", err, tt.wantErr)
			}
		})
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
		if _, err := readCase(casesOf(upstream), name); err != nil {
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
