// Package plugins lists the plugins that this distribution adds to kube-scheduler.
package plugins

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/plugins/costoptimized"
	"berth.dev/berth/pkg/plugins/gpuaware"
	"berth.dev/berth/pkg/plugins/ipreservation"
	"berth.dev/berth/pkg/plugins/networktopology"
	"berth.dev/berth/pkg/plugins/placementpolicy"
	"berth.dev/berth/pkg/plugins/slaaware"
	"berth.dev/berth/pkg/process/informers"
)

// Registry returns the plugins by name, for the registry of a scheduler. This is the only list: a plugin that is not
// here does not exist for any of our binaries.
func Registry() frameworkruntime.Registry {
	registry := frameworkruntime.Registry{
		gpuaware.Name:        gpuaware.New,
		costoptimized.Name:   costoptimized.New,
		coscheduling.Name:    coscheduling.New,
		networktopology.Name: networktopology.New,
		slaaware.Name:        slaaware.New,
		placementpolicy.Name: placementpolicy.New,
		ipreservation.Name:   ipreservation.New,
	}
	for name, build := range registry {
		registry[name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			// What plugins keep of pods and nodes comes on top of what informers keep. Without any of our plugins, the
			// scheduler is as kube-scheduler in this, too.
			if err := informers.Compact(handle.SharedInformerFactory()); err != nil {
				return nil, err //nolint:wrapcheck // it says what failed
			}
			return build(ctx, args, handle)
		}
	}
	return registry
}
