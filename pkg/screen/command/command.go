// Package command runs the commands of the tool: it prints errors, sets the exit status, and handles signals.
//
// Only main functions of commands call Run. It knows no particular command.
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

// statusOfSignal plus the number of the signal is the exit status after a signal, as in a shell.
const statusOfSignal = 128

// grace is how long an interrupted command may clean up. With EndInOrder there is no limit.
const grace = 2 * time.Second

// statusError is an error with an exit status.
type statusError struct {
	error
	status int
}

func (e statusError) Unwrap() error { return e.error }

// WithStatus gives an error an exit status. A nil error stays nil.
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

// OneLine is the text of an error without line breaks.
func OneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

// inOrder marks commands that must not be aborted.
const inOrder = "ends-in-order"

// EndInOrder gives an interrupted command unlimited time to stop what it has started. A second signal ends it at once.
func EndInOrder(cmd *cobra.Command) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[inOrder] = "true"
}

// DropLinkedFlags removes the flags that linked components have added to the global set. Cobra would add them to every
// command. Call it before the first command is made.
func DropLinkedFlags() { pflag.CommandLine = pflag.NewFlagSet("", pflag.ContinueOnError) }

// Run runs a command, prints its error in one line on stderr, and returns its exit status. An error before the command
// begins is bad input. A signal ends the command's context and, soon after that, the command.
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

// interrupted waits until a command whose context has ended returns, or until limit. A command that still succeeds has
// not been interrupted.
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
	// Remove the progress and the ^C of the terminal.
	progress.NewLine(stderr).Clear()
	message, status := "interrupted", statusOfSignal+int(syscall.SIGINT)
	if s == syscall.SIGTERM {
		message, status = "terminated", statusOfSignal+int(syscall.SIGTERM)
	}
	fmt.Fprintf(stderr, "%s: %s\n", root.DisplayName(), message)
	return status
}

// patience is a channel that receives a value when the time of an interrupted command is over.
func patience(running *cobra.Command, grace time.Duration) <-chan time.Time {
	if running != nil && running.Annotations[inOrder] != "" {
		return nil
	}
	return time.After(grace)
}

// noteBegin makes every command store itself when it begins, after its arguments and flags have been checked.
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

// refuseUnknownTopics makes "help" for an unknown command an error. Cobra would print the help of the root command.
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
