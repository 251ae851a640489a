package reservation

import (
	"strconv"
	"time"

	"k8s.io/component-base/metrics"

	"berth.dev/berth/pkg/starttime"
)

var age = metrics.NewGauge(&metrics.GaugeOpts{
	Name: "berth_gang_reservation_age_seconds", StabilityLevel: metrics.ALPHA,
	Help: "How long capacity has been kept for the gang that has a reservation; 0 without one."})
var (
	startError = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name: "berth_gang_start_error_seconds", StabilityLevel: metrics.ALPHA,
		Help: "How far from the start that it was told first a gang started, by whether that was within the interval that " +
			"was told with it: true or false.",
		Buckets: metrics.ExponentialBuckets(15, 2, 14)}, []string{"within"})
	podStartError = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name: "berth_pod_start_error_seconds", StabilityLevel: metrics.ALPHA,
		Help: "How far from the start that it was told first a pod in no gang started, by whether that was within the " +
			"interval that was told with it: true or false.",
		Buckets: metrics.ExponentialBuckets(15, 2, 14)}, []string{"within"})
	slips = metrics.NewCounter(&metrics.CounterOpts{
		Name: "berth_gang_start_slips_total", StabilityLevel: metrics.ALPHA,
		Help: "Times that a gang was told a start behind the interval that it had been told before."})
	gpuTime = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "berth_pod_gpu_seconds_total", StabilityLevel: metrics.ALPHA,
		Help: "GPU time of pods that have gone, by whether they had entered capacity that was kept for a gang until its " +
			"start: true or false."}, []string{"entered"})
)

// Metrics are those to register.
func Metrics() []metrics.Registerable {
	return []metrics.Registerable{age, startError, podStartError, slips, gpuTime}
}

// Prepare makes the series of all labels: a counter that is absent until something happens looks like one that is not
// there.
func Prepare() {
	for _, value := range []string{"false", "true"} {
		startError.WithLabelValues(value)
		podStartError.WithLabelValues(value)
		gpuTime.WithLabelValues(value)
	}
}

// observe counts how wrong the start was that was told first.
func observe(errors *metrics.HistogramVec, first starttime.Told, started time.Time) {
	within := !started.Before(first.Earliest) && !started.After(first.Latest)
	errors.WithLabelValues(strconv.FormatBool(within)).Observe(started.Sub(first.Likely).Abs().Seconds())
}
