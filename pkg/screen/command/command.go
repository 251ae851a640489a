// Package command runs a command of the terminal: what it prints at its end, with which status it ends, and how it ends
// when it is interrupted.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"berth.dev/berth/pkg/screen/progress"
)

// StatusBadInput is the exit status for a file, name or flag that cannot be used.
const StatusBadInput = 2

// statusOfSignal and the signal's number are the exit status of a command that a signal ended, as in a shell.
const statusOfSignal = 128

// grace is how long a command that is interrupted may take to clean up. One that ends in order has no limit.
const grace = 2 * time.Second

// statusError carries the exit status that a command's error asks for.
type statusError struct {
	error
	status int
}

func (e statusError) Unwrap() error { return e.error }

// WithStatus gives an error an exit status of its own; no error stays none.
func WithStatus(err error, status int) error {
	if err == nil {
		return nil
	}
	return statusError{error: err, status: status}
}

// BadInput gives an error the exit status for a file, name or flag that cannot be used.
func BadInput(err error) error { return WithStatus(err, StatusBadInput) }

// Status is the exit status of a command with this error: 1 unless the error says otherwise.
func Status(err error) int {
	var s statusError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &s):
		return s.status
	default:
		return 1
	}
}

// OneLine keeps an error on one line of the terminal, however many its parts put in.
func OneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

// inOrder marks commands that must not be left in the middle.
const inOrder = "ends-in-order"

// EndInOrder lets a command that is interrupted take the time that it needs to stop what it has started. A second
// signal ends it at once.
func EndInOrder(cmd *cobra.Command) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[inOrder] = "true"
}

// DropLinkedFlags removes the flags that components which are linked in put on the global set. Cobra would offer them
// as flags of every command, and commands that run at a time would share them. Call it before the first command is
// made.
func DropLinkedFlags() { pflag.CommandLine = pflag.NewFlagSet("", pflag.ContinueOnError) }

// Run runs a command, prints its error in one line on stderr, and returns its exit status. Whatever is wrong before the
// command itself begins is bad input. A signal ends the command's context and, soon after that, the command.
func Run(root *cobra.Command, stderr io.Writer) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	return run(root, stderr, signals, grace)
}

func run(root *cobra.Command, stderr io.Writer, signals <-chan os.Signal, grace time.Duration) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	refuseUnknownTopics(root)
	var begun atomic.Pointer[cobra.Command]
	noteBegin(root, &begun)
	ended := make(chan error, 1)
	go func() {
		failed, err := root.ExecuteContextC(ctx)
		if err != nil && begun.Load() == nil {
			err = BadInput(fmt.Errorf("%s; see %q", OneLine(err), failed.CommandPath()+" --help"))
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			fmt.Fprintf(stderr, "%s: %s\n", root.DisplayName(), OneLine(err))
		}
		return Status(err)
	case s := <-signals:
		cancel()
		return interrupted(root, stderr, s, ended, signals, patience(begun.Load(), grace))
	}
}

// interrupted waits for a command whose context has ended, as long as limit lets it. A command that was done all the
// same has not been interrupted.
func interrupted(root *cobra.Command, stderr io.Writer, s os.Signal, ended <-chan error, signals <-chan os.Signal,
	limit <-chan time.Time) int {
	select {
	case err := <-ended:
		if err == nil {
			return 0
		}
	case <-limit:
	case <-signals:
	}
	// What was shown of the progress, and the ^C that the terminal shows, are gone then.
	progress.NewLine(stderr).Clear()
	word, status := "interrupted", statusOfSignal+int(syscall.SIGINT)
	if s == syscall.SIGTERM {
		word, status = "terminated", statusOfSignal+int(syscall.SIGTERM)
	}
	fmt.Fprintf(stderr, "%s: %s\n", root.DisplayName(), word)
	return status
}

// patience is a channel that delivers when the time of an interrupted command is over.
func patience(running *cobra.Command, grace time.Duration) <-chan time.Time {
	if running != nil && running.Annotations[inOrder] != "" {
		return nil
	}
	return time.After(grace)
}

// noteBegin lets every command store itself when it begins its work: when its arguments and flags are known to be
// right.
func noteBegin(cmd *cobra.Command, begun *atomic.Pointer[cobra.Command]) {
	if work := cmd.RunE; work != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			begun.Store(cmd)
			return work(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		noteBegin(sub, begun)
	}
}

// refuseUnknownTopics makes "help" for a command that is not there an error, which cobra answers with the help of the
// whole.
func refuseUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "help" || cmd.Run == nil {
			continue
		}
		show := cmd.Run
		cmd.Run, cmd.RunE = nil, func(cmd *cobra.Command, args []string) error {
			if topic, rest, err := root.Find(args); topic == nil || err != nil || len(rest) > 0 {
				return BadInput(fmt.Errorf("there is no command %q to help with", strings.Join(args, " ")))
			}
			show(cmd, args)
			return nil
		}
	}
}
