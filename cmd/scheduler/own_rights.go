package main

import (
	"context"

	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"

	"berth.dev/berth/pkg/rights"
)

// watchRights reports the rights that this process lacks for its configuration, as long as ctx lasts.
func (p *process) watchRights(ctx context.Context, gates featuregate.FeatureGate) {
	var on []string
	if gates.Enabled(features.GenericWorkload) {
		on = append(on, rights.NativeGroups)
	}
	needs := rights.For(&p.config.ComponentConfig, on...)
	// A client of its own: checks do not compete with bindings.
	client, err := newClient(p.config.KubeConfig)
	if err != nil {
		klog.FromContext(ctx).Error(err, "The scheduler's own rights are not checked")
		return
	}
	go rights.Monitor(ctx, client, needs, func(m rights.Missing) { p.Warn(ctx, "RightMissing", m.String()) })
}
