package tool_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/pkg/validate"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestTheShippedManifestsPassClean(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "manifests")
	r := &validate.Report{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		// These folders hold configurations of the extender and of a scheduler that is not ours, and files of Prometheus.
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" || slices.Contains([]string{"extender", "monitoring"},
			filepath.Base(filepath.Dir(path))) {
			return err
		}
		return r.ReadFile(path)
	})
	require.NoError(t, err)
	r.Finish()
	for _, f := range r.Findings {
		// The shared nodes of the local control plane run nothing, so that nothing enforces shares there.
		// The example of a scorer costs what it is warned of, and the stock scheduler is as it is.
		if f.Rule == "batching" && filepath.Base(f.File) == "external-scorer.yaml" || filepath.Base(f.File) == "stock.yaml" {
			continue
		}
		// Each folder of manifests is for a cluster and a configuration of its own.
		if f.Rule == "no-effect" || f.Rule == "no-model" || f.Rule == "no-level" {
			continue
		}
		if f.Severity != validate.Note && (f.Rule != "unenforced-shares" || filepath.Base(f.File) != "demo.yaml") {
			t.Error(f)
		}
	}
	heard := func(w validate.Weight) bool { return w.Plugin == "GPUAware" && w.Weight > 1 }
	if !slices.ContainsFunc(r.Profiles, func(p validate.Profile) bool {
		return p.Name == "berth-scheduler" && slices.ContainsFunc(p.Weights, heard)
	}) {
		t.Errorf("no profile berth-scheduler with GPUAware among %v", r.Profiles)
	}
}

func TestEffectiveWeightsAreThoseOfTheScheduler(t *testing.T) {
	t.Parallel()
	r := &validate.Report{}
	text := configHead + `profiles:
- schedulerName: a
  plugins:
    score: {disabled: [{name: ImageLocality}], enabled: [{name: NodeResourcesFit, weight: 7}]}
    multiPoint: {enabled: [{name: GPUAware, weight: 20}]}
` + quietArgs
	require.NoError(t, r.Read(strings.NewReader(text), "f.yaml"))
	got := map[string]int64{}
	for _, w := range r.Profiles[0].Weights {
		got[w.Plugin] = w.Weight
	}
	want := map[string]int64{"NodeResourcesFit": 7, "GPUAware": 20, "TaintToleration": 3, "NodeAffinity": 2,
		"PodTopologySpread": 2,
		"InterPodAffinity":  2, "DynamicResources": 2, "VolumeBinding": 1, "NodeResourcesBalancedAllocation": 1}
	assert.Equal(t, "weights", want, got)
}

func FuzzValidate(f *testing.F) {
	f.Add(configHead)
	f.Add("shapes: [{name: a}]")
	f.Add("apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, metadata: {annotations: {berth.dev/spot: x}}}]")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "KubeSchedulerConfiguration") {
			// Building schedulers is too slow to be fuzzed; its parser is the stock one.
			t.Skip()
		}
		r := &validate.Report{}
		require.NoError(t, r.Read(strings.NewReader(text), "f"))
		for _, finding := range r.Findings {
			if strings.Contains(finding.String(), "\n") {
				t.Errorf("%q is more than a line", finding)
			}
		}
	})
}
