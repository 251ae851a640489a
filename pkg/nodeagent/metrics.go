package nodeagent

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/process/metricsauth"
)

const resultDone, resultFailed = "done", "failed"

// metrics are those of one agent.
type metrics struct {
	registry *prometheus.Registry
	failures prometheus.Counter
	lastRead prometheus.Gauge
	writes   *prometheus.CounterVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "berth_node_agent_read_failures_total", Help: "Readings of nvidia-smi that failed.",
		}),
		lastRead: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "berth_node_agent_last_read_timestamp_seconds",
			Help: "Unix time of the last reading that did not fail; of the start of the agent while all have failed.",
		}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_node_agent_writes_total",
			Help: "Attempts to bring the node's annotation up to date, by result (done, failed).",
		}, []string{"result"}),
	}
	m.lastRead.SetToCurrentTime()
	m.registry.MustRegister(m.failures, m.lastRead, m.writes)
	return m
}

// Handler serves /healthz, and /metrics to those to whom the API server allows it.
func (a *Agent) Handler(api *rest.Config) (http.Handler, error) {
	metrics, err := metricsauth.New(api, promhttp.HandlerFor(a.metrics.registry, promhttp.HandlerOpts{}))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.alive(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n")) // a client that is gone needs no answer
	})
	mux.Handle("GET /metrics", metrics)
	return mux, nil
}
