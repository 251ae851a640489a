// Package box starts a local control plane for a test and ends it with the test.
package box

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/require"
)

// startWithin bounds the start, which takes five seconds on a free machine.
const startWithin = 4 * time.Minute

// Box is a control plane that lasts as long as a test, or a part of one.
type Box struct {
	*sandbox.Sandbox
	Config  *rest.Config
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Namespace is that of the pods of the methods.
	Namespace string
	// part is the name of the part, empty for the whole.
	part string
	// kubelets says that kubelets and controllers run.
	kubelets bool
	// steady is held by those who need the scheduler to live, and by who kills it.
	steady *sync.RWMutex
}

// Start brings up a control plane. What is in nodes is read as sandbox.LoadNodes does; the folder is the test's.
func Start(t *testing.T, nodes string, opts sandbox.Options) *Box {
	t.Helper()
	dir := t.TempDir()
	opts.Dir, opts.StopWithParent = filepath.Join(dir, "sandbox"), true
	if nodes != "" {
		opts.NodesFile = filepath.Join(dir, "nodes.yaml")
		require.NoError(t, os.WriteFile(opts.NodesFile, []byte(nodes), 0o600))
	}
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	started, err := sandbox.Start(ctx, opts, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		if pid, err := started.PID("control-plane"); err != nil || syscall.Kill(pid, 0) != nil {
			log := filepath.Join(started.LogDir(), "control-plane.log")
			t.Errorf("the control plane ended during the test; its log ends with: %s", sandbox.LastLogLine(log))
		}
		if err := started.Stop(); err != nil {
			t.Errorf("stopping the sandbox: %v", err)
		}
	})
	box := &Box{Sandbox: started, Namespace: v1.NamespaceDefault, kubelets: !opts.NoKubelet, steady: &sync.RWMutex{}}
	if box.Config, err = started.RESTConfig(); err != nil {
		t.Fatal(err)
	}
	box.Config.QPS, box.Config.Burst = 500, 500
	if box.Client, err = kubernetes.NewForConfig(box.Config); err != nil {
		t.Fatal(err)
	}
	if box.Dynamic, err = dynamic.NewForConfig(box.Config); err != nil {
		t.Fatal(err)
	}
	return box
}
