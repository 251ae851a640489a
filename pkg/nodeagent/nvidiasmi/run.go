// Package nvidiasmi reads the GPUs of a machine from the command nvidia-smi: which there are, their hardware slices,
// and how they are connected. The command comes with the driver, hangs where the driver hangs, and prints errors among
// its output, so that nothing it prints is believed unless all of it makes sense.
package nvidiasmi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// maxOutput bounds what is read of one answer. The matrix of 16 GPUs and 40 network cards is 20 KiB.
	maxOutput = 1 << 20
	// killWait is how long a command that was killed may take to close its output.
	killWait = 2 * time.Second
	// longestQuoted is how much of an answer an error repeats.
	longestQuoted = 200
)

// ErrAbsent is returned where there is no nvidia-smi: the machine has no NVIDIA driver, or the container was not given
// it.
var ErrAbsent = errors.New("nvidia-smi is not there")

// ErrHangs is returned where the driver does not answer in time.
var ErrHangs = errors.New("the driver hangs")

// errStuck is returned while an earlier command has not ended, although it was killed.
var errStuck = fmt.Errorf("an earlier nvidia-smi was killed and has not ended: %w", ErrHangs)

// errTooLong ends a command that prints without end.
var errTooLong = fmt.Errorf("more than %d bytes", maxOutput)

// Tool runs nvidia-smi. It is safe for concurrent use; commands run one after the other.
type Tool struct {
	path    string
	timeout time.Duration
	// endsWithin is how long after the timeout a command is waited for: it is killed then, which does not end one that
	// waits in the driver.
	endsWithin time.Duration
	// turn holds a token while no command runs. A process that waits for a hung driver cannot be killed, and no second
	// one is started beside it.
	turn chan struct{}
}

// New returns the tool at a path, or of that name in the PATH. No command takes longer than the timeout.
func New(path string, timeout time.Duration) *Tool {
	t := &Tool{path: path, timeout: timeout, endsWithin: 2 * killWait, turn: make(chan struct{}, 1)}
	t.turn <- struct{}{}
	return t
}

// run returns what the command prints.
func (t *Tool) run(ctx context.Context, args ...string) (string, error) {
	path, err := exec.LookPath(t.path)
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", t.path, ErrAbsent)
	}
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	if _, free := await(t.turn, ctx.Done()); !free {
		cancel()
		return "", errStuck
	}
	done := make(chan answer, 1)
	go func() {
		defer func() { t.turn <- struct{}{} }()
		defer cancel()
		text, err := execute(ctx, path, args)
		done <- answer{text, err}
	}()
	name := "running nvidia-smi " + strings.Join(args, " ")
	timer := time.NewTimer(t.timeout + t.endsWithin)
	defer timer.Stop()
	a, ended := await(done, timer.C)
	switch {
	case !ended:
		return "", fmt.Errorf("%s: %w", name, errStuck)
	case a.err == nil:
		return a.text, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("%s: no answer within %s: %w", name, t.timeout, ErrHangs)
	}
	return "", fmt.Errorf("%s: %w: %s", name, a.err, quote(a.text))
}

// answer is what came of a command.
type answer struct {
	text string
	err  error
}

// await returns what comes before the time is over. Output counts although the time is over, too: a machine that stalls
// shows both at once.
func await[T, O any](comes <-chan T, over <-chan O) (value T, came bool) {
	select {
	case value = <-comes:
		return value, true
	case <-over:
	}
	select {
	case value = <-comes:
		return value, true
	default:
		return value, false
	}
}

// execute runs a program without a shell, with an environment in which its output does not depend on the locale.
func execute(ctx context.Context, path string, args []string) (string, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = killWait
	var out bounded
	// The tool prints errors on either.
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if out.full {
		return "", errTooLong
	}
	return out.text.String(), err
}

// bounded keeps what is written to it, up to a bound, and then refuses.
type bounded struct {
	text bytes.Buffer
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > maxOutput {
		b.full = true
		return 0, errTooLong
	}
	return b.text.Write(p)
}

// quote is the beginning of an answer, for an error.
func quote(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longestQuoted {
		text = text[:longestQuoted] + "…"
	}
	return fmt.Sprintf("%q", text)
}
