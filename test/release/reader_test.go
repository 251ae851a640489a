package release_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// stepTimeout is what a step may take, commands that wait included, which in turn may wait as long as patience.
const (
	stepTimeout = 5 * time.Minute
	patience    = "--timeout=4m"
)

// reader follows pages on one local control plane, in a folder that looks like a checkout.
type reader struct {
	box  *box.Box
	root string
	// own replaces in commands what another test on this machine could use at the same time or what is too short for a
	// slow one.
	own *strings.Replacer
	// shipped is the configuration that the scheduler started with.
	shipped []byte
	changed bool
}

func newReader(t *testing.T) *reader {
	t.Helper()
	root := checkout(t)
	nodes, err := os.ReadFile(filepath.Join(root, "manifests/nodes/demo.yaml"))
	require.NoError(t, err)
	const scorer = "9000"
	port := strconv.Itoa(box.Port(t).Number)
	for _, file := range []string{"manifests/examples/19-external-scorer/scorer.py",
		"manifests/configurations/external-scorer.yaml"} {
		replaceIn(t, filepath.Join(root, file), scorer, port)
	}
	r := &reader{box: box.Start(t, string(nodes), sandbox.Options{FeatureGates: []string{nativeGate + "=true"},
		SchedulerFeatureGates: []string{nativeGate + "=false"}, RuntimeConfig: []string{nativeAPI}}), root: root}
	r.own = strings.NewReplacer("127.0.0.1:"+scorer, "127.0.0.1:"+port, "/tmp/", t.TempDir()+"/", "--timeout=60s",
		patience)
	if r.shipped, err = os.ReadFile(r.configuration()); err != nil {
		t.Fatal(err)
	}
	// Controllers label new nodes, and take the taint off those that are ready.
	r.box.Await(t, "the nodes to be as they stay", func(ctx context.Context) (bool, error) {
		list, err := r.box.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err == nil && !slices.ContainsFunc(list.Items, func(node corev1.Node) bool {
			return len(node.Spec.Taints) > 0 || node.Labels["beta.kubernetes.io/os"] == ""
		}), err
	})
	return r
}

// replaceIn replaces a text in a file, which must have it.
func replaceIn(t *testing.T, file, before, after string) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	if !bytes.Contains(content, []byte(before)) {
		t.Fatalf("%s has no %s", file, before)
	}
	require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(content, []byte(before), []byte(after)), 0o600))
}

func (r *reader) configuration() string { return sandbox.Layout(r.box.Dir()).SchedulerConfig() }

// follow runs the steps of a page; the last one cleans up, and leaves the cluster as it was. Before the last step it
// calls check.
func (r *reader) follow(t *testing.T, steps []step, check func()) {
	t.Helper()
	before := r.nodes(t)
	defer func() {
		// So that one page that fails does not fail all that follow.
		if t.Failed() {
			_, _ = r.bash(t, r.own.Replace(steps[len(steps)-1].commands))
		}
		if r.changed {
			r.restart(t, r.shipped)
			r.changed = false
		}
	}()
	for i, s := range steps {
		if i == len(steps)-1 {
			check()
		}
		r.run(t, s)
	}
	r.box.Await(t, "the pods of the example to go", func(ctx context.Context) (bool, error) {
		pods, err := r.box.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0, err
	})
	if after := r.nodes(t); after != before {
		t.Errorf("the page leaves the nodes changed:\n%s\nthey were\n%s", after, before)
	}
}

// nodes tells of what people change of nodes.
func (r *reader) nodes(t *testing.T) string {
	t.Helper()
	list, err := r.box.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var text strings.Builder
	for _, node := range list.Items {
		fmt.Fprintln(&text, node.Name, node.Labels, node.Spec.Taints, node.Spec.Unschedulable)
	}
	return text.String()
}

// nativeGate and nativeAPI let the API server have groups of Kubernetes itself, which one page uses; the others see
// none of it.
const nativeGate, nativeAPI = "GenericWorkload", "scheduling.k8s.io/v1beta1=true"

// up is the command that starts the control plane with another configuration of the scheduler, upNative the one that
// starts it as it is.
var (
	up       = regexp.MustCompile(`(?m)^bin/berth up .*--scheduler-config (\S+)\n`)
	upNative = "bin/berth down\nbin/berth up --nodes manifests/nodes/demo.yaml --feature-gates " + nativeGate +
		"=true --scheduler-feature-gates " + nativeGate + "=false --runtime-config " + nativeAPI + "\n"
)

func (r *reader) run(t *testing.T, s step) {
	t.Helper()
	commands := strings.ReplaceAll(r.own.Replace(s.commands), upNative, "")
	// Another control plane would take longer and show nothing else than this one with another scheduler.
	if found := up.FindStringSubmatchIndex(commands); found != nil {
		file := commands[found[2]:found[3]]
		before := strings.ReplaceAll(commands[:found[0]], "bin/berth down\n", "")
		if output, err := r.bash(t, before); err != nil {
			t.Fatalf("%v:\n%s", err, output)
		}
		r.reconfigure(t, file)
		commands = commands[found[1]:]
	}
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	var output string
	var failure error
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(context.Context) (bool, error) {
		output, failure = r.bash(t, commands)
		if failure == nil && s.want != nil && !matches(s.want, output) {
			failure = errors.New("it prints something else")
		}
		return failure == nil || !s.repeatable(), nil
	})
	if err = errors.Join(failure, err); err != nil {
		t.Fatalf("%v:\n%s\nit prints\n%s\nand the page says\n%s", err, commands, output, strings.Join(s.want, "\n"))
	}
	t.Logf("%s%s", commands, output)
}

// bash runs commands on the cluster of the reader.
func (r *reader) bash(t *testing.T, commands string) (string, error) {
	t.Helper()
	return bash(t, r.root, commands, stepTimeout, "KUBECONFIG="+r.box.Kubeconfig())
}

// bash runs commands in a folder that looks like a checkout, and returns what they print. What they start in the
// background ends with the test.
func bash(t *testing.T, folder, commands string, limit time.Duration, environment ...string) (string, error) {
	t.Helper()
	// A file, because a pipe would stay open as long as a command in the background.
	out, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		return "", err
	}
	defer out.Close()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, out, out
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(folder, "bin", "tools")+":"+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A shell that has started a control plane takes it down when it is told to end.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	err = cmd.Run()
	if cmd.Process != nil && strings.HasSuffix(commands, "&\n") {
		t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }) // an error means that it has ended
	}
	printed, readErr := os.ReadFile(out.Name())
	return string(printed), errors.Join(err, readErr)
}

// reconfigure does what `berth up --scheduler-config` does to the file.
func (r *reader) reconfigure(t *testing.T, file string) {
	t.Helper()
	if !filepath.IsAbs(file) {
		file = filepath.Join(r.root, file)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	// A machine that compiles beside the test is slow to answer, and the scheduler would go on without.
	text = bytes.ReplaceAll(text, []byte("httpTimeout: 500ms"), []byte("httpTimeout: 30s"))
	var config map[string]any
	require.NoError(t, yaml.Unmarshal(closeWindows(text, time.Now()), &config))
	client, _ := config["clientConnection"].(map[string]any)
	if client == nil {
		client = map[string]any{}
		config["clientConnection"] = client
	}
	client["kubeconfig"] = sandbox.Layout(r.box.Dir()).SchedulerKubeconfig()
	complete, err := yaml.Marshal(config)
	require.NoError(t, err)
	r.changed = true
	r.restart(t, complete)
}

// closeWindows moves the hours of a configuration to a day that is neither today nor next to it, so that a test that
// runs at night sees what a reader sees by day.
func closeWindows(config []byte, now time.Time) []byte {
	day := now.AddDate(0, 0, 3).Weekday().String()[:3]
	return regexp.MustCompile(`days: \[.*\]`).ReplaceAll(config, []byte("days: ["+day+"]"))
}

// restart starts the scheduler with another configuration, and waits until it leads.
func (r *reader) restart(t *testing.T, config []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(r.configuration(), config, 0o600))
	since := metav1.NowMicro()
	r.box.KillScheduler(t)
	r.box.Await(t, "the scheduler to lead", func(ctx context.Context) (bool, error) {
		leases, err := r.box.Client.CoordinationV1().Leases(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, lease := range leases.Items {
			if lease.Name == "berth-scheduler" && lease.Spec.AcquireTime != nil && lease.Spec.AcquireTime.After(since.Time) {
				return true, nil
			}
		}
		return false, nil
	})
}

// bound returns the nodes of the pods that a selector selects, by the value of a node label.
func (r *reader) bound(t *testing.T, selector, label string) map[string]int {
	t.Helper()
	pods, err := r.box.Client.CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(),
		metav1.ListOptions{LabelSelector: selector})
	require.NoError(t, err)
	counts := map[string]int{}
	for _, pod := range pods.Items {
		var node *corev1.Node
		if node, err = r.box.Client.CoreV1().Nodes().Get(t.Context(), pod.Spec.NodeName, metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		counts[node.Labels[label]]++
	}
	return counts
}
