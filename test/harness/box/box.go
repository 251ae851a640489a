// Package box starts a local control plane for a test and ends it with the test.
package box

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/sandbox"
)

const (
	// startWithin bounds the start, which takes five seconds on a free machine.
	startWithin = 4 * time.Minute
	// awaitWithin bounds every wait, long enough for the next minute but one on two cores that compile beside the test.
	awaitWithin = 4 * time.Minute
	pollEvery   = 50 * time.Millisecond
)

// Box is a control plane that lasts as long as a test.
type Box struct {
	*sandbox.Sandbox
	Config *rest.Config
	Client kubernetes.Interface
}

// Start brings up a control plane. What is in nodes is read as sandbox.LoadNodes does; the folder is the test's.
func Start(t *testing.T, nodes string, opts sandbox.Options) *Box {
	t.Helper()
	dir := t.TempDir()
	opts.Dir, opts.StopWithParent = filepath.Join(dir, "sandbox"), true
	if nodes != "" {
		opts.NodesFile = filepath.Join(dir, "nodes.yaml")
		if err := os.WriteFile(opts.NodesFile, []byte(nodes), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	started, err := sandbox.Start(ctx, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Stop(); err != nil {
			t.Errorf("stopping the sandbox: %v", err)
		}
	})
	box := &Box{Sandbox: started}
	if box.Config, err = started.RESTConfig(); err != nil {
		t.Fatal(err)
	}
	box.Config.QPS, box.Config.Burst = 500, 500
	if box.Client, err = kubernetes.NewForConfig(box.Config); err != nil {
		t.Fatal(err)
	}
	return box
}

// Await polls until the condition holds. An API server that could not answer for now is asked again.
func (*Box) Await(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	Await(t, what, done)
}

// Await polls until a condition holds that is not about a control plane alone.
func Await(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	if err := await(t.Context(), awaitWithin, done); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// await polls until the condition holds, and returns its error, or that there was not enough time with the last trouble.
func await(ctx context.Context, within time.Duration, done func(context.Context) (bool, error)) error {
	var trouble error
	err := wait.PollUntilContextTimeout(ctx, pollEvery, within, true, func(ctx context.Context) (bool, error) {
		held, err := done(ctx)
		if trouble = err; passes(err) {
			return false, nil
		}
		return held, err
	})
	if wait.Interrupted(err) {
		return errors.Join(err, trouble)
	}
	return err
}

// passes says whether an error is of a server that has too much to do, which says nothing about the condition.
func passes(err error) bool {
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err) || apierrors.IsTooManyRequests(err)
}

// KillScheduler kills the scheduler without a warning and waits until another has been started in its place.
func (b *Box) KillScheduler(t *testing.T) {
	t.Helper()
	before, err := b.PID("scheduler")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.Await(t, "another scheduler", func(context.Context) (bool, error) {
		now, err := b.PID("scheduler")
		return err == nil && now != before, nil
	})
}
