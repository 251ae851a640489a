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

// demandRights ends this process with one error if its account lacks a right that scheduling depends on: an informer
// that may not list its kind never syncs, and the scheduler waits for all informers. The check runs in the background,
// because the API server may not answer yet.
func demandRights(ctx context.Context, config *schedulerserverconfig.CompletedConfig,
	gates featuregate.FeatureGate) error {
	var on []string
	if gates.Enabled(features.GenericWorkload) {
		on = append(on, rights.NativeGroups)
	}
	needs := rights.For(&config.ComponentConfig, on...)
	// With a client of its own, the checks do not use up the rate limit of bindings.
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
