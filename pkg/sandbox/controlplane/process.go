package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/sandbox"
)

// restartDelay keeps a component that dies at once from taking a core.
const restartDelay = 500 * time.Millisecond

// process is a component that runs as a process of its own and is started again when it dies, as a kubelet does with
// a static pod. It cannot outlive this process.
type process struct {
	name    string
	path    string
	args    []string
	logs    string
	started func(pid int)
	// died, if set, is called each time before the component is started again.
	died func(ctx context.Context)
	// stop ends the component, and returns when it has ended.
	stop func()

	mu   sync.Mutex
	last error
}

// start starts the component, which runs until stop is called, however long ctx lasts.
func (p *process) start(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	p.stop = func() {
		cancel()
		<-ended
	}
	go func() {
		defer close(ended)
		p.run(ctx)
	}()
}

// run starts the component and keeps it running until ctx ends, when it gets a SIGTERM and, a while later, a SIGKILL.
func (p *process) run(ctx context.Context) {
	// The kernel ties Pdeathsig to the thread that forked, so that thread has to last as long as the component.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for ctx.Err() == nil {
		err := p.runOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		p.mu.Lock()
		p.last = err
		p.mu.Unlock()
		klog.FromContext(ctx).Info("Component stopped, starting it again", "component", p.name, "reason", err)
		if p.died != nil {
			p.died(ctx)
		}
		select {
		case <-ctx.Done():
		case <-time.After(restartDelay):
		}
	}
}

func (p *process) runOnce(ctx context.Context) error {
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.name, err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, p.path, p.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	p.started(cmd.Process.Pid)
	return cmd.Wait()
}

func (p *process) logFile() string { return filepath.Join(p.logs, p.name+".log") }

// failure tells how the component stopped last, with the last line it logged, or nil if it has not stopped yet.
func (p *process) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		return nil
	}
	return fmt.Errorf("%s stopped (%w): %s", p.name, p.last, sandbox.LastLogLine(p.logFile()))
}

// childArgs is the command line of a component of the control plane as its own process.
func childArgs(component string, encodedOptions string, ports ports) []string {
	return []string{sandbox.ControlPlaneCommand, encodedOptions, "--component=" + component,
		fmt.Sprintf("--etcd-port=%d", ports.etcd), fmt.Sprintf("--api-port=%d", ports.api)}
}
