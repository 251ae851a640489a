package box

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/require"
)

// Steady keeps tests beside this one from killing the scheduler until the function that it returns is called. What the
// scheduler says once, when something happens, is lost if it dies at that moment.
func (b *Box) Steady() (end func()) {
	b.steady.RLock()
	return b.steady.RUnlock
}

// KillScheduler kills the scheduler without a warning and waits until another has been started in its place.
func (b *Box) KillScheduler(t *testing.T) {
	t.Helper()
	b.steady.Lock()
	defer b.steady.Unlock()
	before, err := b.PID("scheduler")
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(before, syscall.SIGKILL))
	b.Await(t, "another scheduler", func(context.Context) (bool, error) {
		now, err := b.PID("scheduler")
		return err == nil && now != before, nil
	})
}

// StartScheduler starts a scheduler of a test's own, which lasts as long as the test, and returns when it knows the
// cluster. Its log has the name.
func (b *Box) StartScheduler(t *testing.T, name, config string) *exec.Cmd {
	t.Helper()
	berth, err := sandbox.FindBinary()
	require.NoError(t, err)
	port := Port(t)
	log, err := os.Create(filepath.Join(b.LogDir(), name+".log"))
	require.NoError(t, err)
	keys := sandbox.Layout(b.Dir()).Keys()
	binary := (&sandbox.Options{Binary: berth}).SchedulerBinary()
	scheduler := exec.CommandContext(context.WithoutCancel(t.Context()), binary,
		"--config="+config, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port.Number), "--v=2",
		"--tls-cert-file="+keys.Cert(sandbox.KeyServer), "--tls-private-key-file="+keys.Key(sandbox.KeyServer),
		"--authorization-always-allow-paths=/readyz", "--feature-gates=NominatedNodeNameForExpectation=false")
	scheduler.Stdout, scheduler.Stderr = log, log
	require.NoError(t, scheduler.Start())
	t.Cleanup(func() {
		_ = scheduler.Process.Kill()
		_ = scheduler.Wait()
		_ = log.Close()
	})
	endpoint := rest.CopyConfig(b.Config)
	endpoint.Host = "https://" + port.Address()
	client, err := kubernetes.NewForConfig(endpoint)
	require.NoError(t, err)
	b.Await(t, "scheduler "+name, func(ctx context.Context) (bool, error) {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
	return scheduler
}

// SchedulerPage reads a page that the control plane's scheduler serves. It fails while the scheduler is being started
// again.
func (b *Box) SchedulerPage(ctx context.Context, path string, parameters map[string]string) ([]byte, error) {
	config, err := b.SchedulerConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	request := client.Discovery().RESTClient().Get().AbsPath(path)
	for name, value := range parameters {
		request.Param(name, value)
	}
	return request.DoRaw(ctx)
}
