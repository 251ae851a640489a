package tools_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// mounted is a folder with a configuration in the way in which a kubelet mounts a ConfigMap: the file is a link to one
// in a folder, and that a link to a folder with a name of its own. A change replaces the second link.
type mounted struct {
	dir     string
	version int
}

func mountConfig(t *testing.T, content string) *mounted {
	t.Helper()
	m := &mounted{dir: t.TempDir()}
	m.change(t, content)
	if err := os.Symlink(filepath.Join("..data", "scheduler-config.yaml"), m.file()); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *mounted) file() string { return filepath.Join(m.dir, "scheduler-config.yaml") }

func (m *mounted) change(t *testing.T, content string) {
	t.Helper()
	m.version++
	folder := fmt.Sprintf("..%d", m.version)
	if err := os.Mkdir(filepath.Join(m.dir, folder), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.dir, folder, "scheduler-config.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	next := filepath.Join(m.dir, "..data_tmp")
	if err := os.Symlink(folder, next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(m.dir, "..data")); err != nil {
		t.Fatal(err)
	}
}

// followed is a scheduler that follows its configuration in a test.
type followed struct {
	site
	*box.Process
	config *mounted
	client *http.Client
	port   int
	good   string
}

// follow starts the shipped configuration with a metrics port without authentication.
func follow(t *testing.T, shared *box.Box, name string, args ...string) *followed {
	t.Helper()
	s := newSite(t, shared, name, largeNode)
	good := s.config(t, read(t, "base/scheduler-config.yaml"), s.Kubeconfig())
	tls, err := rest.TLSConfigFor(rest.AnonymousClientConfig(s.Config))
	if err != nil {
		t.Fatal(err)
	}
	f := &followed{site: s, config: mountConfig(t, good), good: good, port: box.Port(t).Number,
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: tls, DisableKeepAlives: true},
			Timeout: 5 * time.Second}}
	keys := sandbox.Layout(s.Dir()).PKI()
	f.Process = box.Command(t, "berth-scheduler", append([]string{
		"--config=" + f.config.file(), "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", f.port), "--v=2",
		"--authorization-always-allow-paths=/metrics,/readyz,/livez",
		"--tls-cert-file=" + filepath.Join(keys, "server.crt"), "--tls-private-key-file=" + filepath.Join(keys, "server.key"),
	}, args...)...)
	f.create(t, "first", nil)
	f.Bound(t, "first", "")
	return f
}

// withQPS is the good configuration with one value changed.
func (f *followed) withQPS(qps int) string {
	return strings.Replace(f.good, "qps: 2000", fmt.Sprintf("qps: %d", qps), 1)
}

// metrics returns the lines of our metrics, empty while the port is closed.
func (f *followed) metrics(ctx context.Context) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", f.port),
		nil)
	if err != nil {
		return ""
	}
	response, err := f.client.Do(request)
	if err != nil {
		return ""
	}
	body, err := io.ReadAll(response.Body)
	if errors.Join(err, response.Body.Close()) != nil {
		return ""
	}
	return string(body)
}

func (f *followed) awaitMetric(t *testing.T, line string) {
	t.Helper()
	f.Await(t, "the metric "+line, func(ctx context.Context) (bool, error) {
		return strings.Contains(f.metrics(ctx), "\n"+line), nil
	})
}

func (f *followed) events(t *testing.T, reason string) []string {
	t.Helper()
	list, err := f.Client.EventsV1().Events(f.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, event := range list.Items {
		if event.Reason == reason && event.Regarding.Kind == "Lease" {
			notes = append(notes, event.Note)
		}
	}
	return notes
}

func wrongConfigurationsAreLeft(t *testing.T, shared *box.Box) {
	f := follow(t, shared, "wrong-config")
	for i, test := range []struct{ name, content, says string }{
		{"bad YAML", "profiles: [", "yaml"},
		{"an unknown field", strings.Replace(f.good, "clientConnection:", "clientConection:", 1), "clientConection"},
		{"an unknown plugin", strings.ReplaceAll(f.good, "name: GPUAware", "name: GPUAwful"), "GPUAwful"},
		{"wrong args", strings.Replace(f.good, "args: {defaultingType: List}", "args: {defaultingType: Lisst}", 1), "Lisst"},
		{"an empty file", "", "the file is empty"},
		{"half a file", f.good[:strings.Index(f.good, "{name: GPUAware")+4], "yaml"},
		{"another kind", "apiVersion: v1\nkind: ConfigMap\n", "ConfigMap"},
	} {
		f.config.change(t, test.content)
		f.awaitMetric(t, fmt.Sprintf(`berth_config_reload_total{result="rejected"} %d`, i+1))
		f.AwaitLog(t, "The configuration cannot be used", test.says)
		pod := fmt.Sprintf("after-%d", i)
		f.create(t, pod, nil)
		f.Bound(t, pod, "")
	}
	if err := os.Remove(f.config.file()); err != nil {
		t.Fatal(err)
	}
	f.awaitMetric(t, `berth_config_reload_total{result="rejected"} 8`)
	f.awaitMetric(t, `berth_config_last_reload_successful 0`)
	f.Await(t, "an event about each configuration that was rejected", func(context.Context) (bool, error) {
		return len(f.events(t, "ConfigurationRejected")) == 8, nil
	})
	// The one in force comes back, and nothing restarts.
	if err := os.Symlink(filepath.Join("..data", "scheduler-config.yaml"), f.config.file()); err != nil {
		t.Fatal(err)
	}
	f.config.change(t, f.good)
	f.awaitMetric(t, `berth_config_last_reload_successful 1`)
	f.awaitMetric(t, `berth_config_reload_total{result="success"} 0`)
	if starts := strings.Count(f.Log(), "Starting Kubernetes Scheduler"); starts != 1 {
		t.Errorf("%d starts, want 1", starts)
	}
}

// Pods and gangs keep coming while the configuration changes three times, the last two within a second. Every pod is
// bound exactly once.
func changesLoseNoPod(t *testing.T, shared *box.Box) {
	f := follow(t, shared, "changes")
	bindings, stop := f.countBindings(t)
	names := []string{"first"}
	flow := func(round int) {
		for i := range 15 {
			name := fmt.Sprintf("single-%d-%d", round, i)
			f.create(t, name, nil)
			names = append(names, name)
			if i%5 == 0 {
				for member := range 3 {
					name := fmt.Sprintf("gang-%d-%d-%d", round, i, member)
					f.create(t, name, func(pod *v1.Pod) {
						pod.Labels = map[string]string{
							"pod-group.scheduling.sigs.k8s.io/name":          fmt.Sprintf("g-%d-%d", round, i),
							"pod-group.scheduling.sigs.k8s.io/min-available": "3",
						}
					})
					names = append(names, name)
				}
			}
		}
	}
	// A gang that waits for its last member is as whole after the changes.
	pending := func(member int) {
		name := fmt.Sprintf("late-%d", member)
		f.create(t, name, func(pod *v1.Pod) {
			pod.Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io/name": "late",
				"pod-group.scheduling.sigs.k8s.io/min-available": "3"}
		})
		names = append(names, name)
	}
	pending(0)
	pending(1)
	for round, qps := range []int{1999, 1998} {
		f.config.change(t, f.withQPS(qps))
		inForce := fmt.Sprintf(`berth_config_reload_total{result="success"} %d`, round+1)
		n := 0
		f.Await(t, inForce, func(ctx context.Context) (bool, error) {
			if n++; n%4 == 1 && n < 32 {
				flow(round*100 + n)
			}
			return strings.Contains(f.metrics(ctx), inForce), nil
		})
	}
	f.config.change(t, f.withQPS(1997))
	f.config.change(t, f.withQPS(1996))
	flow(1000)
	f.awaitMetric(t, `berth_config_reload_total{result="success"} 3`)
	pending(2)
	for _, name := range names {
		f.Bound(t, name, "")
	}
	for pod, times := range bindings(stop) {
		if times != 1 {
			t.Errorf("pod %s was bound %d times", pod, times)
		}
	}
	if strings.Count(f.Log(), "Starting Kubernetes Scheduler") != 4 || f.Running() != nil {
		t.Errorf("the scheduler has not started four times in one process")
	}
	f.awaitMetric(t, `berth_config_last_reload_successful 1`)
}

// countBindings counts how often each pod goes from no node to one, or from one to another.
func (f *followed) countBindings(t *testing.T) (result func(stop func()) map[string]int, stop func()) {
	t.Helper()
	pods, err := f.Client.CoreV1().Pods(f.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.Client.CoreV1().Pods(f.Namespace).Watch(t.Context(),
		metav1.ListOptions{ResourceVersion: pods.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan map[string]int, 1)
	go func() {
		nodes, counts := map[string]string{}, map[string]int{}
		for event := range w.ResultChan() {
			if pod, ok := event.Object.(*v1.Pod); ok && event.Type != watch.Deleted && pod.Spec.NodeName != nodes[pod.Name] {
				nodes[pod.Name] = pod.Spec.NodeName
				counts[pod.Name]++
			}
		}
		done <- counts
	}()
	return func(stop func()) map[string]int { stop(); return <-done }, w.Stop
}

// loggedAt is when the first line with the words was logged, in a year that klog does not say.
func loggedAt(t *testing.T, log, words string) time.Time {
	t.Helper()
	for line := range strings.Lines(log) {
		if fields := strings.Fields(line); strings.Contains(line, words) && len(fields) > 1 {
			at, err := time.Parse("I0102 15:04:05.000000", fields[0]+" "+fields[1])
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
	}
	t.Fatalf("nothing says %q", words)
	return time.Time{}
}

// Plugins write the status of groups and policies only where they lead, and know that from this metric alone.
func leaderElectionHasItsMetric(t *testing.T, shared *box.Box) {
	f := follow(t, shared, "election")
	f.awaitMetric(t, `leader_election_master_status{name="kube-scheduler"} 1`)
}

// What a check cannot find is found by the start: the leader election wants more distance between two of its times than
// the validation does.
func unstartableIsTakenBack(t *testing.T, shared *box.Box) {
	f := follow(t, shared, "unstartable")
	unstartable := strings.Replace(f.good, "retryPeriod: 2s", "retryPeriod: 100s", 1)
	f.config.change(t, unstartable)
	f.AwaitLog(t, "going back to the last one that worked", "leader elector")
	f.awaitMetric(t, `berth_config_reload_total{result="failed"} 1`)
	f.awaitMetric(t, `berth_config_reload_total{result="success"} 0`)
	f.awaitMetric(t, `berth_config_last_reload_successful 0`)
	f.create(t, "after", nil)
	f.Bound(t, "after", "")
	// It is not tried again and again, and the next change is.
	f.config.change(t, f.withQPS(1999))
	f.awaitMetric(t, `berth_config_reload_total{result="success"} 1`)
	f.awaitMetric(t, `berth_config_last_reload_successful 1`)
	if starts := strings.Count(f.Log(), "Starting Kubernetes Scheduler"); starts != 4 {
		t.Errorf("%d starts, want 4: the first, the one that fails, the one back, and the last", starts)
	}
}

func wrongFileTakesTheCopy(t *testing.T, shared *box.Box) {
	kept := filepath.Join(t.TempDir(), "last-good.yaml")
	f := follow(t, shared, "wrong-file", "--last-good-config="+kept)
	f.Await(t, "a copy of the configuration", func(context.Context) (bool, error) {
		content, err := os.ReadFile(kept)
		return err == nil && string(content) == f.good, nil
	})
	if err := f.Stop(); err != nil {
		t.Errorf("stopping the scheduler: %v", err)
	}
	f.config.change(t, "profiles: [")
	again := box.Command(t, "berth-scheduler", f.Args...)
	again.AwaitLog(t, "going back to the last one that worked", "yaml")
	f.create(t, "after", nil)
	f.Bound(t, "after", "")
	f.awaitMetric(t, `berth_config_last_reload_successful 0`)
}

// The leader waits for the standby, so that there is always one that schedules. How long a start takes depends on the
// machine, so what is compared is that the leader has waited, and not who was first.
func leaderStartsLater(t *testing.T, shared *box.Box) {
	f := follow(t, shared, "replicas")
	args := slices.Clone(f.Args)
	port := box.Port(t).Number
	for i, arg := range args {
		if strings.HasPrefix(arg, "--secure-port=") {
			args[i] = fmt.Sprintf("--secure-port=%d", port)
		}
	}
	standby := box.Command(t, "berth-scheduler", args...)
	standby.AwaitLog(t, "Attempting to acquire leader lease")
	f.config.change(t, f.withQPS(1999))
	standby.AwaitLog(t, "The changed configuration is in force")
	f.AwaitLog(t, "The changed configuration is in force")
	noticed, anew := loggedAt(t, f.Log(), "The configuration has changed, checking it"), loggedAt(t, f.Log(),
		"Restarting with the changed configuration")
	if waited := anew.Sub(noticed); waited < 5*time.Second {
		t.Errorf("the leader restarted %s after it had noticed the change, want five seconds or more", waited)
	}
	f.create(t, "after", nil)
	f.Bound(t, "after", "")
}
