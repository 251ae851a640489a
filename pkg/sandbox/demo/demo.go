// Package demo runs the shipped examples on a sandbox and checks the outcome.
//
// The command berth demo calls it. It does not touch any other cluster.
package demo

import (
	"context"
	"errors"
	"fmt"
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

// placedWithin bounds the time until all workloads are placed, which usually takes a few seconds.
const placedWithin = 4 * time.Minute

// settleTime is how long the demonstration waits before it checks the outcome, so that late bindings are included.
const settleTime = 2 * time.Second

// pollEvery is the interval in which the pods are read.
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

// Run starts a sandbox, runs the examples on it and checks the outcome. It calls say for each step. It returns an error
// if the demonstration could not be run, or, with the outcome, if a check failed.
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

// cluster reads the sandbox through its API server.
type cluster struct {
	config *rest.Config
	client kubernetes.Interface
}

// runWorkloads creates the workloads one by one, waits until their pods have reached their expected state, and reads
// the outcome.
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
		// In this order every run has the same placements, and the gang that does not fit has been tried before the others.
		if err := c.waitFor(ctx, patience, w, say); err != nil {
			return nil, err
		}
	}
	say("waiting for late bindings")
	select {
	case <-time.After(settleTime):
		return c.outcome(ctx)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// waitFor waits until the pods of a workload have reached their expected state, or patience ends. The latter is no
// error, because the checks report the differences.
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

// pods of all workloads.
func (c cluster) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := c.client.CoreV1().Pods(corev1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the pods: %w", err)
	}
	return list.Items, nil
}
