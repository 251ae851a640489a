package tool_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/validate"
)

func TestAConfigurationWithItsDefaultsIsOneOfItsOwn(t *testing.T) {
	t.Parallel()
	given, err := schedulerconfig.Parse("given", []byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: tuned
  plugins:
    multiPoint: {enabled: [{name: GPUAware, weight: 7}]}
  pluginConfig:
  - name: GPUAware
    args: {strategy: Spread, signals: {prometheus: {url: "http://prometheus:9090"}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	printed, err := validate.WithDefaults(given, runtime.ContentTypeYAML)
	if err != nil {
		t.Fatal(err)
	}
	full, err := schedulerconfig.Parse("printed", printed)
	if err != nil {
		t.Fatalf("what was printed cannot be read: %v\n%s", err, printed)
	}
	profile := full.Component.Profiles[0]
	weights := map[string]int32{}
	for _, p := range profile.Plugins.MultiPoint.Enabled {
		weights[p.Name] = p.Weight
	}
	if weights["GPUAware"] != 7 || weights["TaintToleration"] != 3 {
		t.Errorf("weights %v; want 7 for GPUAware and the default of 3 for TaintToleration", weights)
	}
	args := map[string]any{}
	for _, c := range profile.PluginConfig {
		args[c.Name] = c.Args
	}
	if args["NodeResourcesFit"] == nil {
		t.Errorf("the args of the stock plugins are not there:\n%s", printed)
	}
	for _, c := range given.Component.Profiles[0].PluginConfig {
		if diff := cmp.Diff(any(c.Args), args[c.Name]); diff != "" {
			t.Errorf("args of %s (-given +printed):\n%s", c.Name, diff)
		}
	}
	report := &validate.Report{}
	if err := report.Read(bytes.NewReader(printed), "printed"); err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Rule == "weight" {
			t.Errorf("a weight that the scheduler printed itself: %s", f)
		}
	}
	again, err := validate.WithDefaults(full, runtime.ContentTypeYAML)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(printed), string(again)); diff != "" {
		t.Errorf("printed once more (-first +second):\n%s", diff)
	}
}

func TestAConfigurationWithWhichNothingStartsHasNoDefaults(t *testing.T) {
	t.Parallel()
	given, err := schedulerconfig.Parse("given",
		[]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+
			"profiles: [{plugins: {multiPoint: {enabled: [{name: NoSuchPlugin}]}}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := validate.WithDefaults(given, runtime.ContentTypeYAML); err == nil {
		t.Error("no error")
	}
}

func TestDefaultsKeepTheFilesOfTheSchedulersMachine(t *testing.T) {
	t.Parallel()
	given, err := schedulerconfig.Load("../../manifests/extender/stock-scheduler-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	printed, err := validate.WithDefaults(given, runtime.ContentTypeYAML)
	if err != nil {
		t.Fatal(err)
	}
	full, err := schedulerconfig.Parse("printed", printed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(given.Component.Extenders, full.Component.Extenders); diff != "" {
		t.Errorf("extenders (-given +printed):\n%s", diff)
	}
}
