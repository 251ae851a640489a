// Package demo runs the shipped examples on a sandbox and checks that the outcome is what the project says it is.
package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/sandbox"
)

// placedWithin bounds how long all workloads together may take to be placed. Usually it is a few seconds; a slow
// machine is no failure of the scheduler.
const placedWithin = 4 * time.Minute

// settledWithin bounds the wait for an outcome that does not change any more.
const settledWithin = time.Minute

// settleTime is how long the outcome has to stand still before it is judged, so that a pod that comes late, or one that
// should never have been bound, is seen.
const settleTime = 2 * time.Second

// pollEvery is how often the pods are read while the outcome is waited for.
const pollEvery = 50 * time.Millisecond

// Options of a demonstration.
type Options struct {
	// Dir of the sandbox; empty: a temporary one, or sandbox.DefaultDir with Keep.
	Dir string
	// Keep leaves the sandbox up.
	Keep bool
	// APIServer is a kube-apiserver executable to run in place of the built-in one; see sandbox.Options.
	APIServer string
}

// Run brings a sandbox up, runs the examples on it and judges the outcome; say is told of each step. The error is not
// nil when the demonstration could not be run or a check failed; the outcome is nil only in the first case.
func Run(ctx context.Context, opts Options, say func(string)) (_ *Outcome, err error) {
	scratch, err := os.MkdirTemp("", "berth-demo-")
	if err != nil {
		return nil, fmt.Errorf("making a temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if opts.Dir == "" {
		opts.Dir = sandbox.DefaultDir
		if !opts.Keep {
			opts.Dir = filepath.Join(scratch, "sandbox")
		}
	}
	nodesFile := filepath.Join(scratch, "nodes.yaml")
	nodes, err := manifests.Files.ReadFile("nodes/demo.yaml")
	if err == nil {
		err = os.WriteFile(nodesFile, nodes, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("copying the shipped nodes: %w", err)
	}
	sb, err := sandbox.Start(ctx, sandbox.Options{Dir: opts.Dir, NodesFile: nodesFile, APIServer: opts.APIServer,
		StopWithParent: !opts.Keep}, say)
	if err != nil {
		return nil, fmt.Errorf("bringing up the sandbox: %w", err)
	}
	if !opts.Keep {
		defer func() { err = errors.Join(err, sb.Stop()) }()
	}
	outcome, err := runWorkloads(ctx, sb, say)
	if err != nil {
		return nil, err
	}
	if opts.Keep {
		outcome.Dir, outcome.Kubeconfig = opts.Dir, sb.Kubeconfig()
	}
	if failed := outcome.failed(); failed > 0 {
		return outcome, fmt.Errorf("%d of %d checks failed", failed, len(outcome.Checks))
	}
	return outcome, nil
}

// cluster is the sandbox as a client of its API server reaches it.
type cluster struct {
	config *rest.Config
	client kubernetes.Interface
}

// runWorkloads creates the workloads, waits until every pod is where it should be or no longer changes, and reads what
// became of them.
func runWorkloads(ctx context.Context, sb *sandbox.Sandbox, say func(string)) (*Outcome, error) {
	config, err := sb.RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	c := cluster{config, client}
	say("creating the workloads")
	patience, cancel := context.WithTimeout(ctx, placedWithin)
	defer cancel()
	for _, w := range workloads {
		objects, err := w.objects()
		if err != nil {
			return nil, err
		}
		if _, err := sandbox.CreateObjects(ctx, config, corev1.NamespaceDefault, objects...); err != nil {
			return nil, err
		}
		// One after the other, so that every run of the demonstration comes to the same placements; and the gang that does
		// not fit has to be tried, and to fail, before the rest comes: else it would prove nothing.
		if err := c.waitFor(ctx, patience, w, say); err != nil {
			return nil, err
		}
	}
	say("waiting whether the outcome stands")
	if err := c.settle(ctx); err != nil {
		return nil, err
	}
	return c.outcome(ctx)
}

// waitFor waits until a workload is where it should be, or patience ends, which ends with ctx. Running out of patience
// is no error: the checks will say what is not as it should be.
func (c cluster) waitFor(ctx, patience context.Context, w workload, say func(string)) error {
	settled := 0
	err := wait.PollUntilContextCancel(patience, pollEvery, true, func(context.Context) (bool, error) {
		pods, err := c.pods(ctx)
		settled = w.settled(pods)
		return settled == w.pods, err
	})
	if err != nil && (!wait.Interrupted(err) || ctx.Err() != nil) {
		return err
	}
	state := "bound"
	if w.pending {
		state = "tried, and pending with a reason"
	}
	say(fmt.Sprintf("%s: %d of %s %s", w.name, settled, plural.Of(w.pods, "pod"), state))
	return nil
}

// settle returns when no pod has come, gone or changed its node for settleTime.
func (c cluster) settle(ctx context.Context) error {
	var before map[string]string
	var since time.Time
	err := wait.PollUntilContextTimeout(ctx, pollEvery, settledWithin, true, func(ctx context.Context) (bool, error) {
		pods, err := c.pods(ctx)
		if err != nil {
			return false, err
		}
		now := map[string]string{}
		for i := range pods {
			now[pods[i].Name] = pods[i].Spec.NodeName
		}
		if !maps.Equal(before, now) {
			before, since = now, time.Now()
		}
		return time.Since(since) > settleTime, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("pods still come, go or get nodes after %v", settledWithin)
	}
	return err
}

// pods of all workloads.
func (c cluster) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := c.client.CoreV1().Pods(corev1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the pods: %w", err)
	}
	return list.Items, nil
}
