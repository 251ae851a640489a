package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// mounted is a folder with a configuration in the way in which a kubelet mounts a ConfigMap: the file is a link to one in a
// folder, and that a link to a folder with a name of its own. A change replaces the second link.
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
	*running
	box    *box.Box
	config *mounted
	client *http.Client
	port   int
	good   string
}

// follow starts the shipped configuration with a metrics port that asks nobody for a name.
func follow(t *testing.T, args ...string) *followed {
	t.Helper()
	cluster := box.Start(t, strings.NewReplacer("cpu: '8'", "cpu: '80'", "pods: '100'", "pods: '1000'").Replace(oneNode), sandbox.Options{NoKubelet: true, NoScheduler: true})
	good, err := os.ReadFile(withAccount(t, cluster.Kubeconfig()))
	if err != nil {
		t.Fatal(err)
	}
	f := &followed{box: cluster, config: mountConfig(t, string(good)), good: string(good), client: anyone(t, cluster), port: box.Port(t).Number}
	keys := sandbox.Layout(cluster.Dir()).PKI()
	f.running = startProcess(t, append([]string{
		"--config=" + f.config.file(), "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", f.port), "--v=2",
		"--authorization-always-allow-paths=/metrics,/readyz,/livez",
		"--tls-cert-file=" + filepath.Join(keys, "server.crt"), "--tls-private-key-file=" + filepath.Join(keys, "server.key"),
	}, args...)...)
	create(t, cluster, "first", nil)
	awaitBound(t, cluster, "first")
	return f
}

// withQPS is the good configuration with one value changed.
func (f *followed) withQPS(qps int) string {
	return strings.Replace(f.good, "qps: 2000", fmt.Sprintf("qps: %d", qps), 1)
}

// metrics returns the lines of our metrics, empty while the port is closed.
func (f *followed) metrics(ctx context.Context) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", f.port), nil)
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
	f.box.Await(t, "the metric "+line, func(ctx context.Context) (bool, error) {
		return strings.Contains(f.metrics(ctx), "\n"+line), nil
	})
}

func (f *followed) events(t *testing.T, reason string) []string {
	t.Helper()
	list, err := f.box.Client.EventsV1().Events("kube-system").List(t.Context(), metav1.ListOptions{})
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

func TestAWrongConfigurationLeavesTheOneInForce(t *testing.T) {
	t.Parallel()
	f := follow(t)
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
		f.awaitLog(t, f.box, "The configuration cannot be used", test.says)
		pod := fmt.Sprintf("after-%d", i)
		create(t, f.box, pod, nil)
		awaitBound(t, f.box, pod)
	}
	if err := os.Remove(f.config.file()); err != nil {
		t.Fatal(err)
	}
	f.awaitMetric(t, `berth_config_reload_total{result="rejected"} 8`)
	f.awaitMetric(t, `berth_config_last_reload_successful 0`)
	f.box.Await(t, "an event about each configuration that was rejected", func(context.Context) (bool, error) {
		return len(f.events(t, "ConfigurationRejected")) == 8, nil
	})
	// The one in force comes back, and nothing restarts.
	if err := os.Symlink(filepath.Join("..data", "scheduler-config.yaml"), f.config.file()); err != nil {
		t.Fatal(err)
	}
	f.config.change(t, f.good)
	f.awaitMetric(t, `berth_config_last_reload_successful 1`)
	f.awaitMetric(t, `berth_config_reload_total{result="success"} 0`)
	if starts := strings.Count(f.log(), "Starting Kubernetes Scheduler"); starts != 1 {
		t.Errorf("%d starts, want 1", starts)
	}
}

// Pods and gangs keep coming while the configuration changes three times, the last two within a second. Every pod is bound
// exactly once.
func TestAChangeLosesNoPodAndBindsNoneTwice(t *testing.T) {
	t.Parallel()
	f := follow(t)
	bindings, stop := f.countBindings(t)
	pid := f.Process.Pid
	names := []string{"first"}
	flow := func(round int) {
		for i := range 15 {
			name := fmt.Sprintf("single-%d-%d", round, i)
			create(t, f.box, name, nil)
			names = append(names, name)
			if i%5 == 0 {
				for member := range 3 {
					name := fmt.Sprintf("gang-%d-%d-%d", round, i, member)
					create(t, f.box, name, func(pod *v1.Pod) {
						pod.Labels = map[string]string{
							"pod-group.scheduling.sigs.k8s.io/name": fmt.Sprintf("g-%d-%d", round, i), "pod-group.scheduling.sigs.k8s.io/min-available": "3",
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
		create(t, f.box, name, func(pod *v1.Pod) {
			pod.Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io/name": "late", "pod-group.scheduling.sigs.k8s.io/min-available": "3"}
		})
		names = append(names, name)
	}
	pending(0)
	pending(1)
	for round, qps := range []int{1999, 1998} {
		f.config.change(t, f.withQPS(qps))
		inForce := fmt.Sprintf(`berth_config_reload_total{result="success"} %d`, round+1)
		n := 0
		f.box.Await(t, inForce, func(ctx context.Context) (bool, error) {
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
		awaitBound(t, f.box, name)
	}
	for pod, times := range bindings(stop) {
		if times != 1 {
			t.Errorf("pod %s was bound %d times", pod, times)
		}
	}
	if strings.Count(f.log(), "Starting Kubernetes Scheduler") != 4 || f.ProcessState != nil || f.Process.Pid != pid {
		t.Errorf("the scheduler has not started four times in one process")
	}
	f.awaitMetric(t, `berth_config_last_reload_successful 1`)
}

// countBindings counts how often each pod goes from no node to one, or from one to another.
func (f *followed) countBindings(t *testing.T) (result func(stop func()) map[string]int, stop func()) {
	t.Helper()
	pods, err := f.box.Client.CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.box.Client.CoreV1().Pods(metav1.NamespaceDefault).Watch(t.Context(), metav1.ListOptions{ResourceVersion: pods.ResourceVersion})
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
func TestTheLeaderElectionHasItsMetric(t *testing.T) {
	t.Parallel()
	f := follow(t)
	f.awaitMetric(t, `leader_election_master_status{name="kube-scheduler"} 1`)
}

// What a check cannot find is found by the start: the leader election wants more distance between two of its times than the
// validation does.
func TestAConfigurationThatDoesNotStartIsTakenBack(t *testing.T) {
	t.Parallel()
	f := follow(t)
	unstartable := strings.Replace(f.good, "retryPeriod: 2s", "retryPeriod: 100s", 1)
	f.config.change(t, unstartable)
	f.awaitLog(t, f.box, "going back to the last one that worked", "leader elector")
	f.awaitMetric(t, `berth_config_reload_total{result="failed"} 1`)
	f.awaitMetric(t, `berth_config_reload_total{result="success"} 0`)
	f.awaitMetric(t, `berth_config_last_reload_successful 0`)
	create(t, f.box, "after", nil)
	awaitBound(t, f.box, "after")
	// It is not tried again and again, and the next change is.
	f.config.change(t, f.withQPS(1999))
	f.awaitMetric(t, `berth_config_reload_total{result="success"} 1`)
	f.awaitMetric(t, `berth_config_last_reload_successful 1`)
	if starts := strings.Count(f.log(), "Starting Kubernetes Scheduler"); starts != 4 {
		t.Errorf("%d starts, want 4: the first, the one that fails, the one back, and the last", starts)
	}
}

func TestAContainerThatStartsWithAWrongFileTakesTheCopy(t *testing.T) {
	t.Parallel()
	kept := filepath.Join(t.TempDir(), "last-good.yaml")
	f := follow(t, "--last-good-config="+kept)
	f.box.Await(t, "a copy of the configuration", func(context.Context) (bool, error) {
		content, err := os.ReadFile(kept)
		return err == nil && string(content) == f.good, nil
	})
	f.stop()
	f.config.change(t, "profiles: [")
	again := startProcess(t, f.Args[1:]...)
	again.awaitLog(t, f.box, "going back to the last one that worked", "yaml")
	create(t, f.box, "after", nil)
	awaitBound(t, f.box, "after")
	f.awaitMetric(t, `berth_config_last_reload_successful 0`)
}

// The leader waits for the standby, so that there is always one that schedules. How long a start takes depends on the machine, so
// what is compared is that the leader has waited, and not who was first.
func TestOfTwoReplicasTheLeaderStartsAnewLater(t *testing.T) {
	t.Parallel()
	f := follow(t)
	args := append([]string{}, f.Args[1:]...)
	port := box.Port(t).Number
	for i, arg := range args {
		if strings.HasPrefix(arg, "--secure-port=") {
			args[i] = fmt.Sprintf("--secure-port=%d", port)
		}
	}
	standby := startProcess(t, args...)
	standby.awaitLog(t, f.box, "Attempting to acquire leader lease")
	f.config.change(t, f.withQPS(1999))
	standby.awaitLog(t, f.box, "The changed configuration is in force")
	f.awaitLog(t, f.box, "The changed configuration is in force")
	noticed, anew := loggedAt(t, f.log(), "The configuration has changed, checking it"), loggedAt(t, f.log(), "Restarting with the changed configuration")
	if waited := anew.Sub(noticed); waited < 5*time.Second {
		t.Errorf("the leader restarted %s after it had noticed the change, want five seconds or more", waited)
	}
	create(t, f.box, "after", nil)
	awaitBound(t, f.box, "after")
}
