package main

import (
	"context"
	"fmt"

	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/pkg/features"

	"berth.dev/berth/pkg/process/rights"
)

// demandRights ends this process with one error if its account lacks a right without which it would schedule nothing:
// an informer that may not list its kind is never in sync, and the scheduler waits for all informers. The API server
// need not answer yet, so the check runs beside the start.
func demandRights(ctx context.Context, config *schedulerserverconfig.CompletedConfig,
	gates featuregate.FeatureGate) error {
	var on []string
	if gates.Enabled(features.GenericWorkload) {
		on = append(on, rights.NativeGroups)
	}
	needs := rights.For(&config.ComponentConfig, on...)
	// A client of its own: checks do not compete with bindings.
	client, err := newClient(config.KubeConfig)
	if err != nil {
		return fmt.Errorf("checking the account's rights: %w", err)
	}
	go func() {
		if err := rights.Demand(ctx, client, needs); err != nil {
			klog.FromContext(ctx).Error(err, "The scheduler cannot run")
			klog.FlushAndExit(klog.ExitFlushTimeout, 1)
		}
	}()
	return nil
}
