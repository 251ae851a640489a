package signals

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"berth.dev/berth/test/harness/box"
)

// prometheusServer is a real Prometheus on loopback, with configuration and storage of its own.
type prometheusServer struct {
	url     string
	command []string
	output  bytes.Buffer
	cmd     *exec.Cmd
}

// requireProgram skips the test with a notice where a program is not installed.
func requireProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("NOTICE: %s is not in PATH, so nothing is tested against the real server; Debian: apt-get install prometheus", name)
	}
	return path
}

// startPrometheus starts a server with the scrape_configs given as YAML, and waits until it answers queries. webConfig may be "" or
// the path of a --web.config.file; a server with one tells only its users whether it is ready, and is not waited for.
func startPrometheus(t *testing.T, scrapeConfigs, storage, webConfig string) *prometheusServer {
	t.Helper()
	program := requireProgram(t, "prometheus")
	dir := t.TempDir()
	if storage == "" {
		storage = filepath.Join(dir, "data")
	}
	configFile := writeFile(t, dir, "prometheus.yml",
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
	server := &prometheusServer{url: scheme + "://" + address, command: command}
	server.start(t)
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

// start starts the process, the first time or after stop, and does not wait.
func (p *prometheusServer) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(p.command[0], p.command[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("starting prometheus: %v", err)
	}
}

// awaitReady waits until the server answers queries. Until then it refuses some of them and answers others.
func (p *prometheusServer) awaitReady(t *testing.T) {
	t.Helper()
	eventually(t, func() {}, func() string {
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

// eventually runs round until check is satisfied, and fails with what check last said after a minute.
func eventually(t *testing.T, round func(), check func() string) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		round()
		last = check()
		return last == "", nil
	})
	if err != nil {
		t.Fatalf("waiting for the signal: %v; last: %s", err, last)
	}
}

func writeFile(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatalf("writing a file: %v", err)
	}
	return path
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
	program := requireProgram(t, "promtool")
	dir := t.TempDir()
	input := writeFile(t, dir, "history.om", strings.Join(lines, "\n")+"\n# EOF\n")
	storage = filepath.Join(dir, "data")
	output, err := exec.Command(program, "tsdb", "create-blocks-from", "openmetrics", input, storage).CombinedOutput()
	if err != nil {
		t.Fatalf("backfilling: %v: %s", err, output)
	}
	return storage
}
