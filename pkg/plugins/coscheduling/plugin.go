package coscheduling

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
)

// Name of the plugin in configurations.
const Name = "Coscheduling"

// Plugin is the Coscheduling plugin.
type Plugin struct{}

// New makes the plugin for one profile.
func New(_ context.Context, _ runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
	return &Plugin{}, nil
}

// Name returns the plugin's name.
func (*Plugin) Name() string { return Name }
