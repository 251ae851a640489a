// Package demo runs the shipped examples on a sandbox, tells where each pod went and why, and checks that the outcome
// is what the project says it is.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

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
	say("creating the workloads")
	seen, err := runWorkloads(ctx, sb, opts.Keep, say)
	if err != nil {
		return nil, err
	}
	outcome := seen.outcome()
	if opts.Keep {
		outcome.Dir, outcome.Kubeconfig = opts.Dir, sb.Kubeconfig()
	}
	if failed := outcome.failed(); failed > 0 {
		return outcome, fmt.Errorf("%d of %d checks failed", failed, len(outcome.Checks))
	}
	return outcome, nil
}

// runWorkloads creates the workloads and watches until every pod is where it should be or no longer changes.
func runWorkloads(ctx context.Context, sb *sandbox.Sandbox, keep bool, say func(string)) (*watch, error) {
	config, err := sb.RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, err := newWatch(ctx, client)
	if err != nil {
		return nil, err
	}
	patience, cancel := context.WithTimeout(ctx, placedWithin)
	defer cancel()
	for _, w := range workloads {
		objects, err := w.objects(keep)
		if err != nil {
			return nil, err
		}
		if _, err := sandbox.CreateObjects(ctx, config, corev1.NamespaceDefault, objects...); err != nil {
			return nil, err
		}
		// One after the other, so that every run of the demonstration comes to the same placements; and the gang that does
		// not fit has to be tried, and to fail, before the rest comes: else it would prove nothing.
		if err := seen.waitFor(ctx, patience, w, say); err != nil {
			return nil, err
		}
	}
	say("waiting whether the outcome stands")
	return seen, seen.settle(ctx)
}

// delayKey is the annotation of a pod that says how long it runs before it succeeds (see package stages).
const delayKey = "pod-complete.stage.kwok.x-k8s.io/delay"

// runsOn is how long the Jobs of a cluster that stays up run. Otherwise they would end after a minute, and the cluster
// would look idle.
const runsOn = "8760h"

// objects reads a workload as kubectl apply would create it, so that the example can be applied over it later. With
// keep, its Jobs run until they are deleted.
func (w workload) objects(keep bool) ([]*unstructured.Unstructured, error) {
	objects, err := sandbox.ReadObjects(manifests.Files, w.file())
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		written, err := object.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[corev1.LastAppliedConfigAnnotation] = string(written)
		object.SetAnnotations(annotations)
		if keep && object.GetKind() == "Job" {
			err := unstructured.SetNestedField(object.Object, runsOn, "spec", "template", "metadata", "annotations", delayKey)
			if err != nil {
				return nil, fmt.Errorf("letting Job %s run: %w", object.GetName(), err)
			}
		}
	}
	return objects, nil
}

// waitFor waits until a workload is where it should be, or patience ends, which ends with ctx. Running out of patience
// is no error: the checks will say what is not as it should be.
func (d *watch) waitFor(ctx, patience context.Context, w workload, say func(string)) error {
	err := wait.PollUntilContextCancel(patience, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		return d.settled(w) == w.pods, nil
	})
	if err != nil && (!wait.Interrupted(err) || ctx.Err() != nil) {
		return err
	}
	state := "bound"
	if w.pending {
		state = "tried, and pending with a reason"
	}
	say(fmt.Sprintf("%s: %d of %s %s", w.name, d.settled(w), plural.Of(w.pods, "pod"), state))
	return nil
}

// settle returns when no pod was bound or changed its node for settleTime.
func (d *watch) settle(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, settledWithin, true,
		func(context.Context) (bool, error) {
			return time.Since(d.lastChange()) > settleTime, nil
		})
}
