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

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/sandbox"
)

// restartDelay limits the CPU time of a component that ends right after its start.
const restartDelay = 500 * time.Millisecond

// process is a component in a separate process, which is restarted when it ends, like a static pod. It cannot outlive
// this process.
type process struct {
	name string
	path string
	args []string
	// controlPlane records the process ID after each start, and has the folder of the log.
	controlPlane *controlPlane
	// lease is deleted by admin before a scheduler is restarted.
	lease schedulerLease
	admin kubernetes.Interface

	cancel context.CancelFunc
	ended  chan struct{}
	mu     sync.Mutex
	last   error
}

// start starts the component, which runs until stop is called, even after the end of ctx.
func (p *process) start(ctx context.Context) {
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.ended = make(chan struct{})
	go func() {
		defer close(p.ended)
		p.run(ctx)
	}()
}

// stop ends the component, and returns when it has ended.
func (p *process) stop() {
	p.cancel()
	<-p.ended
}

// run keeps the component running until ctx ends. Then it sends a SIGTERM and, after some time, a SIGKILL.
func (p *process) run(ctx context.Context) {
	// The kernel sends Pdeathsig at the end of the thread that forked, which must therefore outlive the component.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for ctx.Err() == nil {
		err := p.runOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		line := sandbox.LastLogLine(p.logFile()) // before the next start writes to the log
		p.mu.Lock()
		p.last = fmt.Errorf("%s stopped (%w): %s", p.name, err, line)
		p.mu.Unlock()
		klog.FromContext(ctx).Info("Component stopped, starting it again", "component", p.name, "reason", err)
		p.lease.release(ctx, p.admin)
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
	p.controlPlane.started(ctx, p.name, cmd.Process.Pid)
	return cmd.Wait()
}

func (p *process) logFile() string { return filepath.Join(p.controlPlane.layout.Logs(), p.name+".log") }

// failure is how the component last stopped, with the last line of its log, or nil if it has not stopped yet.
func (p *process) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}
