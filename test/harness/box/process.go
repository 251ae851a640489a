package box

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"berth.dev/berth/test/harness/require"
)

// Process is a command of Berth that a test has started. It ends with the test, which shows its log if it has failed.
type Process struct {
	// Args are those of the command, without its name.
	Args []string

	cmd   *exec.Cmd
	ended chan struct{}
	// err is how the process has ended.
	err error

	mu  sync.Mutex
	out bytes.Buffer
}

// Command starts a command that `make build` builds.
func Command(t *testing.T, name string, args ...string) *Process {
	t.Helper()
	p := &Process{Args: args, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), Binary(t, name), args...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.WaitDelay = time.Minute
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.Stop() // a test that wants to know asks itself
		if t.Failed() {
			t.Logf("the log of %s %s:\n%s", name, strings.Join(args, " "), p.Log())
		}
	})
	return p
}

// Write takes what the process prints.
func (p *Process) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(data)
}

// Log is what the process has printed so far.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop ends the process as a kubelet does, and returns how it has ended.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // an error means that it has ended
	<-p.ended
	return p.err
}

// Running returns an error once the process has ended.
func (p *Process) Running() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s has ended (%w):\n%s", p.cmd.Path, p.err, p.Log())
	default:
		return nil
	}
}

// AwaitLog waits until the process has logged all of the texts on one line.
func (p *Process) AwaitLog(t *testing.T, texts ...string) {
	t.Helper()
	Await(t, fmt.Sprintf("a line of the log with %q", texts), func(context.Context) (bool, error) {
		ended := p.Running() // asked before the log, which is whole once it has ended
		for line := range strings.Lines(p.Log()) {
			all := true
			for _, text := range texts {
				all = all && strings.Contains(line, text)
			}
			if all {
				return true, nil
			}
		}
		return false, ended
	})
}

// AwaitAnswer waits until a URL answers with the text, as long as running, if it is given, returns no error.
func AwaitAnswer(t *testing.T, url, want string, running func() error) {
	t.Helper()
	said := "nothing"
	defer func() {
		if t.Failed() {
			t.Logf("%s says %s", url, said)
		}
	}()
	Await(t, url+" to say "+want, func(ctx context.Context) (bool, error) {
		if running != nil {
			if err := running(); err != nil {
				return false, err
			}
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			said = err.Error()
			return false, nil //nolint:nilerr // it does not listen yet
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		said = string(body)
		return err == nil && strings.Contains(said, want), nil
	})
}
