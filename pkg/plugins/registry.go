// Package plugins lists the plugins that this distribution adds to kube-scheduler.
package plugins

import (
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/plugins/costoptimized"
	"berth.dev/berth/pkg/plugins/gpuaware"
	"berth.dev/berth/pkg/plugins/ipreservation"
	"berth.dev/berth/pkg/plugins/networktopology"
	"berth.dev/berth/pkg/plugins/placementpolicy"
	"berth.dev/berth/pkg/plugins/slaaware"
)

// Registry returns the plugins by name, for the registry of a scheduler. This is the only list: a plugin that is not
// here does not exist for any of our binaries.
func Registry() frameworkruntime.Registry {
	return frameworkruntime.Registry{
		gpuaware.Name:        gpuaware.New,
		costoptimized.Name:   costoptimized.New,
		coscheduling.Name:    coscheduling.New,
		networktopology.Name: networktopology.New,
		slaaware.Name:        slaaware.New,
		placementpolicy.Name: placementpolicy.New,
		ipreservation.Name:   ipreservation.New,
	}
}
