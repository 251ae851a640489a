package nodeagent

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

// errHangs is returned where the driver does not answer in time.
var errHangs = errors.New("the driver hangs")

// errTooLong ends a command that prints without end.
var errTooLong = fmt.Errorf("more than %d bytes", maxOutput)

// ask returns what nvidia-smi, at a path or of that name in the PATH, prints of the GPUs' connections. It comes with
// the driver, hangs where the driver hangs, and prints errors among its output. A process that waits for a hung driver
// cannot be killed: then ask does not return, so that no second one is started beside it.
func ask(ctx context.Context, path string, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "topo", "-m")
	// The output does not depend on the locale.
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = killWait
	var out bounded
	// The tool prints errors on either.
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	switch {
	case out.full:
		err = errTooLong
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("no answer within %s: %w", timeout, errHangs)
	case err != nil:
		err = fmt.Errorf("%w: %s", err, quote(out.text.String()))
	}
	if err != nil {
		return "", fmt.Errorf("running nvidia-smi topo -m: %w", err)
	}
	return out.text.String(), nil
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
