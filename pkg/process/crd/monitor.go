package crd

import (
	"context"
	"sync"
	"time"

	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/utils/clock"
)

const (
	// checkEvery is how often the schemas are read: definitions change when something is installed.
	checkEvery = time.Minute
	// checkTimeout bounds one check, so that an API server that hangs does not end them all.
	checkTimeout = 30 * time.Second
)

var prunedFields = metrics.NewGaugeVec(&metrics.GaugeOpts{
	Name: "berth_field_pruned", StabilityLevel: metrics.ALPHA,
	Help: "Fields of custom resources that the API server drops, because their definition is another project's or of " +
		"another release: 1 for each. Absent when none is.",
}, []string{"resource", "field"})

var registerMetrics = sync.OnceFunc(func() { schedulermetrics.RegisterMetrics(prunedFields) })

// Monitor checks for dropped fields now and then every minute, until ctx ends. It logs each once, and shows it in the
// metric berth_field_pruned for as long as the API server drops it.
func Monitor(ctx context.Context, clock clock.WithTicker, client restclient.Interface) {
	registerMetrics()
	known, failing := map[Pruned]bool{}, false
	logger := klog.FromContext(ctx)
	ticker := clock.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		round, cancel := context.WithTimeout(ctx, checkTimeout)
		missing, err := Check(round, client)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			logger.Error(err, "Checking the definitions of custom resources failed, trying again")
		case err == nil:
			known = report(logger, known, missing)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// report logs what has changed since the fields known before, and returns the missing ones.
func report(logger klog.Logger, known map[Pruned]bool, missing []Pruned) map[Pruned]bool {
	now, fresh := map[Pruned]bool{}, []string{}
	for _, p := range missing {
		now[p] = true
		prunedFields.WithLabelValues(p.Resource, p.Field).Set(1)
		if !known[p] {
			fresh = append(fresh, p.Resource+" "+p.Field)
		}
	}
	if len(fresh) > 0 {
		logger.Error(nil,
			"The API server drops fields that are written: a CustomResourceDefinition is not the one of this release",
			"fields", fresh, "remedy", "apply manifests/crd")
	}
	for p := range known {
		if !now[p] {
			prunedFields.DeleteLabelValues(p.Resource, p.Field)
			logger.Info("The API server keeps the field now", "resource", p.Resource, "field", p.Field)
		}
	}
	return now
}
