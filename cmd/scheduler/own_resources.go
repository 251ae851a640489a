package main

import (
	"context"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"berth.dev/berth/pkg/crd"
)

// watchResources reports the fields of custom resources that the API server drops, as long as ctx lasts.
func (p *process) watchResources(ctx context.Context) {
	client, err := newClient(p.config.KubeConfig)
	if err != nil {
		klog.FromContext(ctx).Error(err, "The definitions of custom resources are not checked")
		return
	}
	go crd.Monitor(ctx, clock.RealClock{}, client.Discovery().RESTClient(),
		func(field crd.Pruned) { p.Warn(ctx, "FieldPruned", field.String()) })
}
