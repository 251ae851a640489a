package plugins_test

import (
	"strings"
	"testing"

	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/require"
)

func TestAPluginThatIsEnabledInPartIsRefused(t *testing.T) {
	t.Parallel()
	const queue = "queueSort: {disabled: [{name: '*'}], enabled: [{name: Coscheduling}]}"
	for _, test := range []struct{ name, plugins, want string }{
		{"a gang plugin that does not reserve", queue + `, preFilter: {enabled: [{name: Coscheduling}]},
      permit: {enabled: [{name: Coscheduling}]}`, `profile p: plugin Coscheduling is enabled at queueSort, preFilter, permit ` +
			`but not at preEnqueue, filter, reserve, preBind, which it needs as well: write plugins: {multiPoint: {enabled: ` +
			`[{name: Coscheduling}]}, queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}}`},
		{"one that is everywhere", queue + ", multiPoint: {enabled: [{name: Coscheduling}]}", ""},
		{"one whose preemption is left out", queue + `, multiPoint: {enabled: [{name: Coscheduling}]},
      postFilter: {disabled: [{name: Coscheduling}]}`, ""},
		{"one that is enabled for preemption alone", "postFilter: {enabled: [{name: Coscheduling}]}",
			"plugin Coscheduling is enabled at postFilter but not at queueSort, preEnqueue, preFilter, filter, reserve, " +
				"permit, preBind, which it needs as well: write plugins: {multiPoint: "},
		{"a filter and a score that keep no books", `filter: {enabled: [{name: GPUAware}]},
      score: {enabled: [{name: GPUAware}]}`, ""},
		{"one that is left out at one point", `multiPoint: {enabled: [{name: IPReservation}]},
      reserve: {disabled: [{name: IPReservation}]}`, "but not at reserve, which it needs as well: write plugins: " +
			"{multiPoint: {enabled: [{name: IPReservation}]}}"},
		{"one that only scores", "score: {enabled: [{name: CostOptimized}]}", ""},
		{"a filter without what it is prepared by", "filter: {enabled: [{name: PlacementPolicy}]}",
			"profile p: plugin PlacementPolicy is enabled at filter but not at "},
		{"none of ours", "multiPoint: {enabled: [{name: NodeResourcesFit}]}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			config, err := schedulerconfig.Parse("config.yaml", []byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: p
    plugins: {`+test.plugins+`}
`))
			require.NoError(t, err)
			w := simulation.NewWorld()
			defer w.Stop()
			got := ""
			if err := w.Start(simulation.Setup{Config: config, Parallelism: 1}); err != nil {
				got = err.Error()
			}
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("got error %q, want %q", got, test.want)
			}
		})
	}
}
