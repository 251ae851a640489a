package nodeagent

import (
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/metricsauth"
	"berth.dev/berth/pkg/nodeagent/nvidiasmi"
)

const resultDone, resultFailed = "done", "failed"

// metrics are those of one agent.
type metrics struct {
	registry *prometheus.Registry
	failures *prometheus.CounterVec
	lastRead *prometheus.GaugeVec
	writes   *prometheus.CounterVec
	gpus     *prometheus.GaugeVec
	strange  prometheus.Gauge
	unseen   prometheus.Gauge
	vanished prometheus.Counter
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_node_agent_read_failures_total", Help: "Readings that failed, by source (kubelet, nvidia-smi).",
		}, []string{"source"}),
		lastRead: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "berth_node_agent_last_read_timestamp_seconds",
			Help: "Unix time of the last reading that did not fail, by source; of the start of the agent while all have failed.",
		}, []string{"source"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_node_agent_writes_total",
			Help: "Attempts to bring the node's annotations up to date that needed a request, by result (done, failed).",
		}, []string{"result"}),
		gpus: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "berth_node_agent_gpus",
			Help: "GPUs of the node by state (healthy, unhealthy, in_use); those in use are healthy or not besides. Absent " +
				"while nothing is known.",
		}, []string{"state"}),
		strange: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "berth_node_agent_unknown_devices", Help: "Devices in the hands of pods that belong to no GPU that is listed.",
		}),
		unseen: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "berth_node_agent_unseen_devices",
			Help: "Devices that the kubelet offers or has given to pods while nvidia-smi lists no GPU: the container lacks " +
				"the driver.",
		}),
		vanished: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_node_agent_vanished_gpus_total", Help: "GPUs that the driver listed and later did not.",
		}),
	}
	m.registry.MustRegister(m.failures, m.lastRead, m.writes, m.gpus, m.strange, m.unseen, m.vanished)
	return m
}

// read counts a reading of a source that was last good at that time, or has not been good since the agent started then.
func (m *metrics) read(source string, good time.Time, err error) {
	switch {
	case err == nil:
		m.lastRead.WithLabelValues(source).Set(float64(time.Now().Unix()))
	case !errors.Is(err, nvidiasmi.ErrAbsent):
		m.failures.WithLabelValues(source).Inc()
		// A source that was never read has a time, too: what is absent raises no alert.
		m.lastRead.WithLabelValues(source).Set(float64(good.Unix()))
	}
}

func (m *metrics) show(p *picture) {
	healthy := 0
	for _, d := range p.devices {
		if d.Healthy {
			healthy++
		}
	}
	m.gpus.WithLabelValues("healthy").Set(float64(healthy))
	m.gpus.WithLabelValues("unhealthy").Set(float64(len(p.devices) - healthy))
	m.gpus.WithLabelValues("in_use").Set(float64(len(p.inUse)))
	m.strange.Set(float64(len(p.strangers)))
}

// forget takes back what show said: nothing is known.
func (m *metrics) forget() {
	m.gpus.Reset()
	m.strange.Set(0)
}

// Handler serves /healthz, and /metrics to those to whom the API server allows it.
func (a *Agent) Handler(api *rest.Config) (http.Handler, error) {
	metrics, err := metricsauth.New(api, promhttp.HandlerFor(a.metrics.registry, promhttp.HandlerOpts{}))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.Alive(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n")) // a client that is gone needs no answer
	})
	mux.Handle("GET /metrics", metrics)
	return mux, nil
}
