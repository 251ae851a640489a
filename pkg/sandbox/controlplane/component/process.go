// Package component keeps the components of a sandbox running that have a process of their own.
package component

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

// Process is a component that runs as a process of its own and is started again when it dies, as a kubelet does with
// a static pod. It cannot outlive this process.
type Process struct {
	Name string
	Path string
	Args []string
	// Logs is the folder of its log, which has its name.
	Logs string
	// Started is called each time the component has been started.
	Started func(pid int)
	// Died, if set, is called each time before the component is started again.
	Died func(ctx context.Context)

	cancel context.CancelFunc
	ended  chan struct{}
	mu     sync.Mutex
	last   error
}

// Start starts the component, which runs until Stop is called, however long ctx lasts.
func (p *Process) Start(ctx context.Context) {
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.ended = make(chan struct{})
	go func() {
		defer close(p.ended)
		p.run(ctx)
	}()
}

// Stop ends the component, and returns when it has ended.
func (p *Process) Stop() {
	p.cancel()
	<-p.ended
}

// run starts the component and keeps it running until ctx ends, when it gets a SIGTERM and, a while later, a SIGKILL.
func (p *Process) run(ctx context.Context) {
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
		p.last = fmt.Errorf("%s stopped (%w): %s", p.Name, err, said)
		p.mu.Unlock()
		klog.FromContext(ctx).Info("Component stopped, starting it again", "component", p.Name, "reason", err)
		if p.Died != nil {
			p.Died(ctx)
		}
		select {
		case <-ctx.Done():
		case <-time.After(restartDelay):
		}
	}
}

func (p *Process) runOnce(ctx context.Context) error {
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.Name, err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, p.Path, p.Args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	p.Started(cmd.Process.Pid)
	return cmd.Wait()
}

func (p *Process) logFile() string { return filepath.Join(p.Logs, p.Name+".log") }

// Failure tells how the component stopped last, with the last line that it had logged then, or nil if it has not
// stopped yet.
func (p *Process) Failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}
