package main

import (
	"context"

	"k8s.io/klog/v2"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/utils/clock"

	"berth.dev/berth/pkg/process/crd"
)

// watchResources reports the fields of custom resources that the API server drops, as long as ctx lasts.
func watchResources(ctx context.Context, config *schedulerserverconfig.CompletedConfig) {
	client, err := newClient(config.KubeConfig)
	if err != nil {
		klog.FromContext(ctx).Error(err, "The definitions of custom resources are not checked")
		return
	}
	go crd.Monitor(ctx, clock.RealClock{}, client.Discovery().RESTClient())
}
