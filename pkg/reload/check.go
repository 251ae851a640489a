package reload

import (
	"bytes"
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

// checkTimeout is how long the check of a configuration may take.
const checkTimeout = time.Minute

// check lets a second process of this program load the configuration with the same flags and build all profiles.
func check(ctx context.Context, content []byte) error {
	if len(bytes.TrimSpace(content)) == 0 {
		return errors.New("the file is empty")
	}
	descriptor, err := memoryFile(content)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(descriptor), "configuration")
	defer file.Close()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
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
	err = cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("checking the configuration: %w", ctx.Err())
	}
	if reason := reasonIn(output.String()); reason != "" {
		return errors.New(reason)
	}
	return fmt.Errorf("checking the configuration: %w", err)
}

// commandFailed is how the command logs the error that ended it.
const commandFailed = `"command failed" err=`

// reasonIn returns the error that ended a scheduler, or else the last line of its log.
func reasonIn(output string) string {
	last := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if _, quoted, found := strings.Cut(line, commandFailed); found {
			if reason, err := strconv.Unquote(quoted); err == nil {
				return strings.Join(strings.Fields(reason), " ")
			}
			return quoted
		}
		if line != "" {
			last = line
		}
	}
	return last
}
