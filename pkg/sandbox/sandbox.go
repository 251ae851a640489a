// Package sandbox starts a real local control plane: etcd, kube-apiserver and the controller manager in one process,
// kwok instead of kubelets, and the scheduler as a separate process, all on loopback and with their data in one folder.
//
// The commands up, down and demo and the tests call it. It links no control plane, so that test binaries stay small:
// package controlplane, which only the berth executable links, runs the processes.
package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ControlPlaneCommand is the hidden subcommand of berth that runs the process of the control plane.
const ControlPlaneCommand = "control-plane"

// Sandbox is a control plane that is up.
type Sandbox struct {
	layout Layout
}

// Start starts a sandbox and returns when its API server is ready and its scheduler, if any, leads. It calls progress,
// which may be nil, for each step. If it fails, or ctx ends before, it leaves no process, file or new folder behind.
// For options that cannot be used it returns an InputError.
func Start(ctx context.Context, opts Options, progress func(step string)) (_ *Sandbox, err error) {
	if err := opts.complete(); err != nil {
		return nil, InputError{err}
	}
	nodes, err := opts.readNodes(ctx)
	if err != nil {
		return nil, InputError{err}
	}
	layout := Layout(opts.Dir)
	made := layout.missing()
	lock, err := layout.acquire()
	if errors.Is(err, ErrUp) {
		return nil, fmt.Errorf("%w: %s (kubeconfig %s); `berth down --dir %s` stops it", err, opts.Dir, layout.Kubeconfig(),
			opts.Dir)
	}
	if err != nil {
		return nil, InputError{errors.Join(err, removeEmpty(made))}
	}
	defer lock.Close()
	defer func() {
		if err != nil {
			err = errors.Join(err, layout.remove(made))
		}
	}()
	// The lock was free, so existing data belongs to a crashed sandbox.
	if _, err := os.Stat(layout.Etcd()); err == nil && progress != nil {
		progress("removing the data of a control plane that was not stopped with `berth down`")
	}
	if err := layout.clean(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(layout.Logs(), 0o700); err != nil {
		return nil, fmt.Errorf("creating the log folder: %w", err)
	}
	// The control plane reads a copy, because the file may change or be a pipe.
	if opts.NodesFile != "" {
		if err := os.WriteFile(layout.Nodes(), nodes, 0o600); err != nil {
			return nil, fmt.Errorf("copying the nodes: %w", err)
		}
	}
	if err := startControlPlane(ctx, opts, lock, progress); err != nil {
		return nil, err
	}
	return &Sandbox{layout: layout}, nil
}

// startControlPlane starts the process of the control plane, and returns when it is ready. The process inherits the
// lock.
func startControlPlane(ctx context.Context, opts Options, lock *os.File, progress func(string)) error {
	log, err := os.OpenFile(filepath.Join(Layout(opts.Dir).Logs(), "control-plane.log"),
		os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the control plane's log: %w", err)
	}
	defer log.Close()
	reports, reportsOut, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("opening a pipe: %w", err)
	}
	defer reports.Close()
	encoded, err := json.Marshal(opts)
	if err != nil {
		return fmt.Errorf("encoding the sandbox's options: %w", err)
	}

	cmd := exec.Command(opts.Binary, ControlPlaneCommand, string(encoded))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{reportsOut, lock}
	// In a session of its own the process does not get a Ctrl-C of the terminal. berth stops it in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if opts.StopWithParent {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
	}
	err = startOnLastingThread(cmd)
	reportsOut.Close()
	if err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}

	followed := make(chan error, 1)
	go func() { followed <- follow(reports, progress) }()
	select {
	case err = <-followed:
	case <-ctx.Done():
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		// Reap the process if it ends while this one still lives.
		go func() { _ = cmd.Wait() }()
		return nil
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	killer := time.AfterFunc(stopTimeout, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	killer.Stop()
	if errors.Is(err, errStoppedEarly) {
		err = fmt.Errorf("%w: %s", err, LastLogLine(log.Name()))
	}
	return err
}

// startOnLastingThread starts a command so that its Pdeathsig, if set, is sent at the end of this process: the kernel
// sends it at the end of the thread that forked, so the fork is done on a thread that never ends.
func startOnLastingThread(cmd *exec.Cmd) error {
	if cmd.SysProcAttr.Pdeathsig == 0 {
		return cmd.Start()
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		started <- cmd.Start()
		select {}
	}()
	return <-started
}

// Open returns the sandbox that is up in a folder.
func Open(dir string) (*Sandbox, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolving %s: %w", dir, err)
	}
	layout := Layout(abs)
	if _, err := os.Stat(layout.lock()); err != nil {
		return nil, fmt.Errorf("no sandbox in %s: the folder is the one of --dir, or .berth where berth up was run", dir)
	}
	return &Sandbox{layout: layout}, nil
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (s *Sandbox) Kubeconfig() string { return s.layout.Kubeconfig() }

// Dir is the sandbox's folder.
func (s *Sandbox) Dir() string { return string(s.layout) }

// LogDir is the folder of the components' logs.
func (s *Sandbox) LogDir() string { return s.layout.Logs() }

// RESTConfig is a client configuration with the administrator's rights and no client-side rate limit.
func (s *Sandbox) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("loading the sandbox's kubeconfig: %w", err)
	}
	config.QPS = -1
	return config, nil
}

// SchedulerConfig is RESTConfig for the endpoints of the scheduler, such as its metrics.
func (s *Sandbox) SchedulerConfig() (*rest.Config, error) {
	config, err := s.RESTConfig()
	if err != nil {
		return nil, err
	}
	state, err := s.layout.ReadState()
	if err != nil {
		return nil, err
	}
	if state.Scheduler == "" {
		return nil, fmt.Errorf("the sandbox in %s has no scheduler", s.layout)
	}
	config.Host = state.Scheduler
	return config, nil
}

// PID is the process ID of a component: "control-plane", "scheduler", or with Split "etcd" and "kube-apiserver".
func (s *Sandbox) PID(component string) (int, error) {
	state, err := s.layout.ReadState()
	if err != nil {
		return 0, err
	}
	pid, ok := state.PIDs[component]
	if !ok {
		return 0, fmt.Errorf("component %q has no process of its own; there are %v", component, state.PIDs)
	}
	return pid, nil
}

// stopTimeout bounds an orderly stop. Processes that still run after it are killed.
const stopTimeout = 15 * time.Second

// Stop ends every process of the sandbox and removes its data, also after a crash.
func (s *Sandbox) Stop() error {
	lock, err := s.layout.acquire()
	if errors.Is(err, ErrUp) {
		state, stateErr := s.layout.ReadState()
		if stateErr != nil {
			return fmt.Errorf("the sandbox in %s is coming up or going down: %w", s.layout, stateErr)
		}
		lock, err = s.stopControlPlane(state.PIDs["control-plane"])
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	return s.layout.Remove()
}

// stopControlPlane ends the process of the control plane, which ends its children, and returns the lock that it had. If
// the process does not end in time, it is killed.
func (s *Sandbox) stopControlPlane(pid int) (*os.File, error) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return nil, fmt.Errorf("stopping process %d: %w", pid, err)
		}
		var lock *os.File
		err := wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, stopTimeout, true,
			func(context.Context) (bool, error) {
				var err error
				lock, err = s.layout.acquire()
				if errors.Is(err, ErrUp) {
					return false, nil
				}
				return err == nil, err
			})
		if !wait.Interrupted(err) {
			return lock, err
		}
	}
	return nil, fmt.Errorf("process %d holds %s and does not end", pid, s.layout.lock())
}

// klogLine matches a line of klog. Its error, if there is one, is quoted after err=.
var klogLine = regexp.MustCompile(`^[IWEF]\d{4} \S+ +\d+ \S+\] (.*)$`)

// LastLogLine returns the last line of a log for an error message: of a line of klog, its error or else its message.
func LastLogLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	line := lines[len(lines)-1]
	if parts := klogLine.FindStringSubmatch(line); parts != nil {
		line = parts[1]
	}
	if _, quoted, ok := strings.Cut(line, ` err="`); ok {
		if unquoted, err := strconv.Unquote(`"` + quoted); err == nil {
			return unquoted
		}
	}
	return line
}
