package box

import (
	"bytes"
	"context"
	"strconv"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"berth.dev/berth/test/harness/require"
)

// heardMetric is the newest version that each informer of the scheduler has stored.
const heardMetric = "informer_store_resource_version"

// AwaitHeard waits until the control plane's scheduler has heard of a version of a resource, which it does of nodes, of
// pods and of other objects separately. Without a scheduler there is nothing to wait for.
func (b *Box) AwaitHeard(t *testing.T, resource, version string) {
	t.Helper()
	if _, err := b.PID("scheduler"); err != nil {
		return
	}
	want, err := strconv.ParseFloat(version, 64)
	require.NoError(t, err)
	b.Await(t, "the scheduler to hear of "+resource, func(ctx context.Context) (bool, error) {
		page, err := b.SchedulerPage(ctx, "/metrics", nil)
		if err != nil {
			// One that is being started again lists everything.
			return false, nil //nolint:nilerr // it is asked again
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
		if err != nil {
			return false, err
		}
		for _, m := range families[heardMetric].GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "resource" && label.GetValue() == resource {
					return m.GetGauge().GetValue() >= want, nil
				}
			}
		}
		return false, nil
	})
}
