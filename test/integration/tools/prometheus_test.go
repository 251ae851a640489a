package tools_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics/legacyregistry"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// prometheusServer is a real Prometheus on loopback, with configuration and storage of its own.
type prometheusServer struct {
	url    string
	cmd    *exec.Cmd
	output bytes.Buffer
}

// startPrometheus starts a server with the scrape_configs given as YAML, and waits until it answers queries. webConfig
// may be "" or the path of a --web.config.file; a server with one tells only its users whether it is ready, and is not
// waited for.
func startPrometheus(t *testing.T, scrapeConfigs, storage, webConfig string) *prometheusServer {
	t.Helper()
	program := box.Installed(t, "prometheus", "prometheus")
	if storage == "" {
		storage = filepath.Join(t.TempDir(), "data")
	}
	configFile := write(t, "prometheus.yml",
		"global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n"+scrapeConfigs)
	address := box.Port(t).Address()
	command := []string{
		program, "--config.file=" + configFile, "--storage.tsdb.path=" + storage, "--web.listen-address=" + address,
		"--storage.tsdb.retention.time=30d", "--log.level=warn",
	}
	scheme := "http"
	if webConfig != "" {
		command = append(command, "--web.config.file="+webConfig)
		scheme = "https"
	}
	server := &prometheusServer{url: scheme + "://" + address, cmd: exec.Command(command[0], command[1:]...)}
	server.cmd.Stdout, server.cmd.Stderr = &server.output, &server.output
	server.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := server.cmd.Start(); err != nil {
		t.Fatalf("starting prometheus: %v", err)
	}
	t.Cleanup(func() {
		server.stop()
		if t.Failed() {
			t.Logf("output of prometheus:\n%s", server.output.String())
		}
	})
	if webConfig == "" {
		server.awaitReady(t)
	}
	return server
}

// awaitReady waits until the server answers queries. Until then it refuses some of them and answers others.
func (p *prometheusServer) awaitReady(t *testing.T) {
	t.Helper()
	reads(t, func() string {
		answer, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return err.Error()
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return answer.Status
		}
		return ""
	})
}

// stop ends the process and waits for its end; a second call does nothing.
func (p *prometheusServer) stop() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// reads waits until what a reader knows is as it should be: wrong returns what is not.
func reads(t *testing.T, wrong func() string) {
	t.Helper()
	last := ""
	defer func() {
		if t.Failed() {
			t.Logf("the reader: %s", last)
		}
	}()
	box.Await(t, "the signal", func(context.Context) (bool, error) {
		last = wrong()
		return last == "", nil
	})
}

// soon are the settings of a Prometheus server that is asked all the time.
func soon(url string) config.Prometheus {
	return config.Prometheus{URL: url, Interval: &metav1.Duration{Duration: 100 * time.Millisecond},
		Timeout: &metav1.Duration{Duration: time.Minute}}
}

// newFactory stands for a scheduler: its informer factory is what readers belong to.
func newFactory() kubeinformers.SharedInformerFactory {
	return kubeinformers.NewSharedInformerFactory(fake.NewClientset(), 0)
}

// measured is the value of a metric about a signal of a server, 0 if there is none.
func measured(t *testing.T, name, server, signal string) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range metric.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			if strings.Contains(server, labels["server"]) && labels["signal"] == signal {
				return metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// failsAgain waits until another query for a signal has failed.
func (p *prometheusServer) failsAgain(t *testing.T, signal string) {
	t.Helper()
	const failures = "berth_signal_query_failures_total"
	before := measured(t, failures, p.url, signal)
	reads(t, func() string {
		if measured(t, failures, p.url, signal) > before {
			return ""
		}
		return "no query for " + signal + " has failed"
	})
}

// exporter serves metrics in the text format; what it serves may be changed.
type exporter struct {
	mu   sync.Mutex
	text string
	http *httptest.Server
}

func startExporter(t *testing.T, lines ...string) *exporter {
	t.Helper()
	e := &exporter{}
	e.set(lines...)
	e.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write([]byte(e.text))
	}))
	t.Cleanup(e.http.Close)
	return e
}

func (e *exporter) set(lines ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.text = strings.Join(lines, "\n") + "\n"
}

// job is a scrape_config for the exporter, with labels put on by the target as relabelling would do.
func (e *exporter) job(name string, targetLabels string) string {
	return fmt.Sprintf("- job_name: %s\n  static_configs:\n  - targets: [%q]\n    labels: {%s}\n",
		name, strings.TrimPrefix(e.http.URL, "http://"), targetLabels)
}

// backfill makes storage that holds series in the OpenMetrics format with the samples' own times.
func backfill(t *testing.T, lines []string) (storage string) {
	t.Helper()
	program := box.Installed(t, "promtool", "prometheus")
	input := write(t, "history.om", strings.Join(lines, "\n")+"\n# EOF\n")
	storage = filepath.Join(t.TempDir(), "data")
	output, err := exec.Command(program, "tsdb", "create-blocks-from", "openmetrics", input, storage).CombinedOutput()
	if err != nil {
		t.Fatalf("backfilling: %v: %s", err, output)
	}
	return storage
}
