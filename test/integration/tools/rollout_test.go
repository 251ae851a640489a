package tools_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// rollout is a site whose scheduler is replaced by one with another configuration, as a Deployment does it: the new one
// starts beside the old one, which ends when the new one is ready.
type rollout struct {
	site
	good string
}

func newRollout(t *testing.T, shared *box.Box, name string) rollout {
	t.Helper()
	s := newSite(t, shared, name, largeNode)
	return rollout{s, s.config(t, readManifest(t, "base/scheduler-config.yaml"), s.Kubeconfig())}
}

// replica starts a scheduler with a configuration and the flags.
func (r rollout) replica(t *testing.T, config string, args ...string) *box.Process {
	t.Helper()
	keys := sandbox.Layout(r.Dir()).Keys()
	return box.Command(t, "berth-scheduler", append([]string{
		"--config=" + write(t, "scheduler-config.yaml", config), "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", box.Port(t).Number), "--v=2",
		"--tls-cert-file=" + keys.Cert(sandbox.KeyServer), "--tls-private-key-file=" + keys.Key(sandbox.KeyServer),
	}, args...)...)
}

// A pod of a rollout whose configuration is wrong ends with the reason, and the one that runs leads on.
func wrongConfigurationsLeaveTheLeader(t *testing.T, shared *box.Box) {
	r := newRollout(t, shared, "wrong-config")
	r.replica(t, r.good)
	r.create(t, "first", nil)
	r.Bound(t, "first", "")
	for i, test := range []struct{ name, content, says string }{
		{"bad YAML", "profiles: [", "yaml"},
		{"an unknown field", strings.Replace(r.good, "clientConnection:", "clientConection:", 1), "clientConection"},
		{"an unknown plugin", strings.ReplaceAll(r.good, "name: GPUAware", "name: GPUAwful"), "GPUAwful"},
		{"wrong args", strings.Replace(r.good, "args: {defaultingType: List}", "args: {defaultingType: Lisst}", 1), "Lisst"},
		{"half a file", r.good[:strings.Index(r.good, "{name: GPUAware")+4], "yaml"},
		{"another kind", "apiVersion: v1\nkind: ConfigMap\n", "ConfigMap"},
		// The leader election wants more distance between two of its times than the validation does.
		{"what only the start finds", strings.Replace(r.good, "retryPeriod: 2s", "retryPeriod: 100s", 1), "leader elector"},
	} {
		broken := r.replica(t, test.content)
		broken.AwaitLog(t, "command failed", test.says)
		pod := fmt.Sprintf("after-%d", i)
		r.create(t, pod, nil)
		r.Bound(t, pod, "")
	}
}

// Pods and gangs keep coming while the configuration is rolled out twice. Every pod is bound exactly once. The lease
// lasts for two minutes: a leader that ends gives it back.
func rolloutsLoseNoPod(t *testing.T, shared *box.Box) {
	r := newRollout(t, shared, "rollouts")
	bindings, stop := r.countBindings(t)
	var names []string
	member := func(group, name string) {
		r.create(t, name, func(pod *v1.Pod) {
			pod.Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io/name": group,
				"pod-group.scheduling.sigs.k8s.io/min-available": "3"}
		})
		names = append(names, name)
	}
	flow := func(round int) {
		for i := range 15 {
			name := fmt.Sprintf("single-%d-%d", round, i)
			r.create(t, name, nil)
			names = append(names, name)
			if i%5 == 0 {
				for n := range 3 {
					member(fmt.Sprintf("g-%d-%d", round, i), fmt.Sprintf("gang-%d-%d-%d", round, i, n))
				}
			}
		}
	}
	leader := r.replica(t, r.good)
	// A gang that waits for its last member is as whole after the changes.
	member("late", "late-0")
	member("late", "late-1")
	for round, qps := range []int{1999, 1998} {
		flow(10 * round)
		next := r.replica(t, strings.Replace(r.good, "qps: 2000", fmt.Sprintf("qps: %d", qps), 1))
		next.AwaitLog(t, "Attempting to acquire leader lease")
		flow(10*round + 1)
		if err := leader.Stop(); err != nil {
			t.Errorf("stopping the leader: %v", err)
		}
		leader = next
	}
	flow(100)
	member("late", "late-2")
	for _, name := range names {
		r.Bound(t, name, "")
	}
	for pod, times := range bindings(stop) {
		if times != 1 {
			t.Errorf("pod %s was bound %d times", pod, times)
		}
	}
}

// countBindings counts how often each pod goes from no node to one, or from one to another.
func (r rollout) countBindings(t *testing.T) (result func(stop func()) map[string]int, stop func()) {
	t.Helper()
	pods, err := r.Client.CoreV1().Pods(r.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	w, err := r.Client.CoreV1().Pods(r.Namespace).Watch(t.Context(),
		metav1.ListOptions{ResourceVersion: pods.ResourceVersion})
	require.NoError(t, err)
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

// Dashboards tell the replica that leads by this metric of the stock command.
func leaderElectionHasItsMetric(t *testing.T, shared *box.Box) {
	r := newRollout(t, shared, "election")
	tls, err := rest.TLSConfigFor(rest.AnonymousClientConfig(r.Config))
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: tls, DisableKeepAlives: true},
		Timeout: 5 * time.Second}
	port := box.Port(t).Number
	// Of a flag that is given twice the last value holds.
	r.replica(t, r.good, fmt.Sprintf("--secure-port=%d", port), "--authorization-always-allow-paths=/metrics")
	r.Await(t, "the metric of the leader election", func(ctx context.Context) (bool, error) {
		text := body(ctx, client, fmt.Sprintf("https://127.0.0.1:%d/metrics", port))
		return strings.Contains(text, "\nleader_election_master_status{name=\"kube-scheduler\"} 1"), nil
	})
}

// body returns what is at an address, empty while the port is closed.
func body(ctx context.Context, client *http.Client, url string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return ""
	}
	response, err := client.Do(request)
	if err != nil {
		return ""
	}
	text, err := io.ReadAll(response.Body)
	if errors.Join(err, response.Body.Close()) != nil {
		return ""
	}
	return string(text)
}
