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

// restartDelay keeps a component that dies at once from taking a core.
const restartDelay = 500 * time.Millisecond

// process is a component that runs as a process of its own and is started again when it dies, as a kubelet does with a
// static pod. It cannot outlive this process.
type process struct {
	name string
	path string
	args []string
	// of is told each time the component has been started. Its log has the name of the component.
	of *controlPlane
	// lease is released by admin before a scheduler is started again.
	lease schedulerLease
	admin kubernetes.Interface

	cancel context.CancelFunc
	ended  chan struct{}
	mu     sync.Mutex
	last   error
}

// start starts the component, which runs until stop is called, however long ctx lasts.
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
		// The next start logs, too.
		said := sandbox.LastLogLine(p.logFile())
		p.mu.Lock()
		p.last = fmt.Errorf("%s stopped (%w): %s", p.name, err, said)
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
	p.of.started(ctx, p.name, cmd.Process.Pid)
	return cmd.Wait()
}

func (p *process) logFile() string { return filepath.Join(p.of.layout.Logs(), p.name+".log") }

// failure tells how the component stopped last, with the last line that it had logged then, or nil if it has not
// stopped yet.
func (p *process) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}
