package reload

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// checkTimeout is how long the check of a configuration may take.
	checkTimeout = time.Minute
	// firstRetry and longestRetry are the pauses after a check that could not be made: each is twice as long as the one
	// before.
	firstRetry, longestRetry = 5 * time.Second, 5 * time.Minute
	// panicStatus is how a Go program ends that panics, or whose runtime gets no thread or no memory.
	panicStatus = 2
)

// errNotChecked means that nothing is known of a configuration, because its check could not be made.
var errNotChecked = errors.New("the check could not be made")

// postponed is a configuration that could not be checked.
type postponed struct {
	hash  string
	pause time.Duration
	until time.Time
}

// postpone notes that the configuration could not be checked, and returns after what time it is to be tried again.
func (p *postponed) postpone(hash string, now time.Time) time.Duration {
	if p.hash != hash {
		*p = postponed{hash: hash}
	}
	p.pause = min(max(2*p.pause, firstRetry), longestRetry)
	p.until = now.Add(p.pause)
	return p.pause
}

// holds reports whether it is too early to try the configuration again.
func (p *postponed) holds(hash string, now time.Time) bool {
	return p.hash == hash && now.Before(p.until)
}

// check lets a second process of this program load the configuration with the same flags and build all profiles. An
// error that is not errNotChecked says what is wrong with the configuration.
func check(ctx context.Context, content []byte) error {
	if len(bytes.TrimSpace(content)) == 0 {
		return errors.New("the file is empty")
	}
	descriptor, err := memoryFile(content)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotChecked, err)
	}
	file := os.NewFile(uintptr(descriptor), "configuration")
	defer file.Close()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("%w: finding this program: %w", errNotChecked, err)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	// A scheduler that writes its configuration builds its profiles before, takes no port and ends.
	cmd := exec.CommandContext(ctx, self, append(append([]string{}, os.Args[1:]...),
		"--config="+descriptorPath(3), "--write-config-to=/dev/null", "--secure-port=0")...)
	cmd.ExtraFiles = []*os.File{file} // descriptor 3 of the other process
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// The kernel ties Pdeathsig to the thread that forked.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var output bytes.Buffer
	cmd.Stderr = &output
	return judge(ctx, cmd.Run(), output.String())
}

// judge says what the end of a check means. Only a program that ends of its own accord and with an error has read the
// configuration and refused it: one that is killed, that panics or that is not started may work with it another time.
func judge(ctx context.Context, err error, output string) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: not within %s", errNotChecked, checkTimeout)
	}
	reason := reasonIn(output)
	var ended *exec.ExitError
	switch {
	case !errors.As(err, &ended) || !ended.Exited():
		return fmt.Errorf("%w: %w", errNotChecked, err)
	case ended.ExitCode() == panicStatus:
		return fmt.Errorf("%w: %w: %s", errNotChecked, err, reason)
	case reason != "":
		return errors.New(reason)
	}
	return fmt.Errorf("the check ended with: %w", err)
}

// commandFailed is how the command logs the error that ended it.
const commandFailed = `"command failed" err=`

// reasonIn returns the error that ended a scheduler, or else what it panicked with or the last line of its log.
func reasonIn(output string) string {
	panicked, last := "", ""
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if _, quoted, found := strings.Cut(line, commandFailed); found {
			if reason, err := strconv.Unquote(quoted); err == nil {
				return strings.Join(strings.Fields(reason), " ")
			}
			return quoted
		}
		if panicked == "" && (strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")) {
			panicked = line
		}
		if line != "" {
			last = line
		}
	}
	return cmp.Or(panicked, last)
}
