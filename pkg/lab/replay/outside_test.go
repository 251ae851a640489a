package replay

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/require"
)

func TestWhatLiesOutsideIsRefusedOrLeftOut(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
		"leaderElection: {leaderElect: false}\n"
	run := func(text string) (*replayed.Result, error) {
		c, err := schedulerconfig.Parse("f.yaml", []byte(head+text))
		require.NoError(t, err)
		return Run(context.Background(), c, smallInput(t), Options{Mode: replayed.VirtualTime, Horizon: time.Minute})
	}
	_, err := run("extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter}]\n")
	if !errors.Is(err, ErrInput) || !strings.HasPrefix(err.Error(), "f.yaml: extenders: http://127.0.0.1:1 ") {
		t.Errorf("with an extender: error %v, want one that names file and extender", err)
	}
	r, err := run(`profiles:
- plugins: {multiPoint: {enabled: [{name: GPUAware, weight: 20}]}}
  pluginConfig: [{name: GPUAware, args: {signals: {prometheus: {url: 'http://127.0.0.1:1'}}}}]
`)
	require.NoError(t, err)
	if len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "GPUAware was run without what Prometheus would tell it") {
		t.Errorf("with live signals: notes %q, want one that says they are left out", r.Notes)
	}
	r, err = run(`profiles:
- plugins: {multiPoint: {enabled: [{name: SLAAware, weight: 20}]}}
  pluginConfig: [{name: SLAAware, args: {signals: {prometheus: {url: 'http://127.0.0.1:1'}, latencyMsQuery: x}}}]
`)
	require.NoError(t, err)
	if len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "SLAAware was run without what Prometheus would tell it") ||
		r.Placed != r.Pods {
		t.Errorf("with figures of objectives: notes %q, %d of %d pods placed; want one note, and all placed", r.Notes,
			r.Placed, r.Pods)
	}
}
