package reload

import (
	"sync"

	"k8s.io/component-base/metrics"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
)

var (
	reloads = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "berth_config_reload_total", StabilityLevel: metrics.ALPHA,
		Help: "Changes of the configuration file by result: success (in force), rejected (did not pass the check), failed " +
			"(passed, and the scheduler " +
			"did not start with it). Counted since the start of the container.",
	}, []string{"result"})
	lastSuccessful = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "berth_config_last_reload_successful", StabilityLevel: metrics.ALPHA,
		Help: "1 if the configuration in force is that of the file, 0 if the file has one that was not taken.",
	})
	hashInfo = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "berth_config_hash_info", StabilityLevel: metrics.ALPHA,
		Help: "1, with the first 16 digits of the SHA-256 of the configuration in force and of the one in the file.",
	}, []string{"in_force", "file"})
	changeDuration = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "berth_config_change_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Time from when the last change of the file was noticed to when the scheduler had all its objects with the " +
			"new configuration.",
	})
	registerOnce sync.Once
)

func registerMetrics() {
	registerOnce.Do(func() { schedulermetrics.RegisterMetrics(reloads, lastSuccessful, hashInfo, changeDuration) })
}

// show publishes what is known. The content of the file has the given hash.
func (c *Config) show(file string) {
	registerMetrics()
	hashInfo.Reset()
	hashInfo.WithLabelValues(hashOf(c.inForce), file).Set(1)
	if file == hashOf(c.inForce) {
		lastSuccessful.Set(1)
	} else {
		lastSuccessful.Set(0)
	}
}

// count adds to the results of this process and of those before it.
func (c *Config) count(result string) {
	c.counts[result]++
	reloads.WithLabelValues(result).Inc()
}
