// Package plugins lists the plugins that this distribution adds to kube-scheduler.
package plugins

import (
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/plugins/costoptimized"
	"berth.dev/berth/pkg/plugins/gpuaware"
	"berth.dev/berth/pkg/plugins/ipreservation"
	"berth.dev/berth/pkg/plugins/networktopology"
	"berth.dev/berth/pkg/plugins/placementpolicy"
	"berth.dev/berth/pkg/plugins/slaaware"
)

// Options returns one option for app.NewSchedulerCommand or app.Setup per plugin. This is the only list: a plugin that
// is not here does not exist for any of our binaries.
func Options() []app.Option {
	return []app.Option{
		app.WithPlugin(gpuaware.Name, gpuaware.New),
		app.WithPlugin(costoptimized.Name, costoptimized.New),
		app.WithPlugin(coscheduling.Name, coscheduling.New),
		app.WithPlugin(networktopology.Name, networktopology.New),
		app.WithPlugin(slaaware.Name, slaaware.New),
		app.WithPlugin(placementpolicy.Name, placementpolicy.New),
		app.WithPlugin(ipreservation.Name, ipreservation.New),
	}
}
