// Package scripts runs the built command as its users do: the scripts of a folder say what is typed and what is to be
// seen.
package scripts

import (
	"bytes"
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/require"
)

// Run runs the scripts of a folder, with these commands besides those of this package.
func Run(t *testing.T, folder string, more map[string]func(*testscript.TestScript, bool, []string)) {
	t.Helper()
	binary, err := sandbox.FindBinary()
	require.NoError(t, err)
	bin := filepath.Dir(binary)
	commands := map[string]func(*testscript.TestScript, bool, []string){"status": status, "interrupt": interrupt,
		"gone": gone, "takenport": takenPort}
	maps.Copy(commands, more)
	testscript.Run(t, testscript.Params{
		Dir:                 folder,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
			env.Setenv("REPOSITORY", filepath.Dir(bin))
			return nil
		},
		Cmds: commands,
	})
}

// status N COMMAND... runs a command and expects this exit status.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	if got := statusOf(err); got != want {
		ts.Fatalf("exit status %d (%v), want %d", got, err, want)
	}
}

func statusOf(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		return -1
	}
}

// within bounds how long a command may take to come to where it is interrupted, and to end then.
const within = 3 * time.Minute

// interrupt presses Ctrl-C at a moment of a command, and expects that it ends with one line and the status for that:
//
//	interrupt says TEXT COMMAND...     when it has printed the text
//	interrupt reads FILE COMMAND...    while it waits for the content of a file
//	interrupt asks FILE COMMAND...     while it waits for an API server, whose kubeconfig is the file
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt says|reads|asks TEXT|FILE COMMAND...")
	}
	moment, what := args[0], args[1]
	path, err := exec.LookPath(filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], args[2]))
	ts.Check(err)
	said := &output{}
	var come func(ended <-chan struct{}) bool
	switch moment {
	case "says":
		come = func(ended <-chan struct{}) bool { return said.await(what, ended) }
	case "reads":
		fifo := ts.MkAbs(what)
		ts.Check(syscall.Mkfifo(fifo, 0o600))
		come = func(ended <-chan struct{}) bool { return opened(fifo, ended) }
	case "asks":
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		defer listener.Close()
		ts.Check(os.WriteFile(ts.MkAbs(what), []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\nusers: [{name: u}]\n"+
			"contexts: [{name: c, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: \"http://"+
			listener.Addr().String()+"\"}}]\n"), 0o600))
		come = func(ended <-chan struct{}) bool { return asked(listener, ended) }
	default:
		ts.Fatalf("%q: must be says, reads or asks", moment)
	}
	cmd := exec.Command(path, args[3:]...)
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "TMPDIR=" + ts.Getenv("TMPDIR"),
		"KUBECONFIG=" + ts.Getenv("KUBECONFIG")}
	cmd.Stdout, cmd.Stderr = said, said
	ts.Check(cmd.Start())
	ended := make(chan struct{})
	var result error
	go func() {
		result = cmd.Wait()
		close(ended)
	}()
	if !come(ended) {
		_ = cmd.Process.Kill()
		<-ended
		ts.Fatalf("it has not come so far (%v):\n%s", result, said)
	}
	ts.Check(cmd.Process.Signal(os.Interrupt))
	select {
	case <-ended:
	case <-time.After(within):
		_ = cmd.Process.Kill()
		<-ended
		ts.Fatalf("it does not end:\n%s", said)
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if got := statusOf(result); got != 130 || lines[len(lines)-1] != "berth: interrupted" ||
		strings.Count(said.String(), "berth:") != 1 {
		ts.Fatalf("exit status %d, want 130 and \"berth: interrupted\" as the last line:\n%s", got, said)
	}
}

// output collects what a command prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// poll waits until a condition holds, and is false if the command ends or takes too long before.
func poll(ended <-chan struct{}, holds func() bool) bool {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.After(within)
	for !holds() {
		select {
		case <-ended:
			return false
		case <-timeout:
			return false
		case <-ticker.C:
		}
	}
	return true
}

func (o *output) await(text string, ended <-chan struct{}) bool {
	return poll(ended, func() bool { return strings.Contains(o.String(), text) })
}

// opened waits until a pipe is open for reading.
func opened(fifo string, ended <-chan struct{}) bool {
	return poll(ended, func() bool {
		// It fails as long as there is no reader. It stays open, or the reader would see its end.
		_, err := syscall.Open(fifo, syscall.O_WRONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		return err == nil
	})
}

// asked waits for a connection, which is never answered.
func asked(listener net.Listener, ended <-chan struct{}) bool {
	accepted := make(chan struct{})
	go func() {
		if _, err := listener.Accept(); err == nil {
			close(accepted)
		}
	}()
	return poll(ended, func() bool {
		select {
		case <-accepted:
			return true
		default:
			return false
		}
	})
}

// gone FOLDER expects that nothing is left of a sandbox: no file, and no process that was started for it.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gone FOLDER")
	}
	folder := ts.MkAbs(args[0])
	if _, err := os.Lstat(folder); !errors.Is(err, os.ErrNotExist) {
		ts.Fatalf("%s is there (%v)", folder, err)
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	ts.Check(err)
	// The last of them may be about to end.
	left := ""
	if !poll(nil, func() bool {
		left = ""
		for _, process := range processes {
			// One that cannot be read has ended.
			if line, err := os.ReadFile(process); err == nil && bytes.Contains(line, []byte(folder)) {
				left += string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})) + "\n"
			}
		}
		return left == ""
	}) {
		ts.Fatalf("these processes are left:\n%s", left)
	}
}

// takenPort NAME sets a variable to a port of loopback on which another program listens.
func takenPort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: takenport NAME")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = listener.Close() })
	ts.Setenv(args[0], strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
}
