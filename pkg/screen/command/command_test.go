package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"berth.dev/berth/test/harness/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// tree is a command with one of each kind of subcommand.
func tree(work func(context.Context) error) *cobra.Command {
	root := &cobra.Command{Use: "tool", SilenceUsage: true, SilenceErrors: true}
	needs := &cobra.Command{Use: "needs", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return nil }}
	needs.Flags().String("file", "", "")
	_ = needs.MarkFlagRequired("file")
	long := &cobra.Command{Use: "work", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return work(cmd.Context()) }}
	root.AddCommand(needs, long)
	return root
}

func TestStatusAndLineOfTheEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args   []string
		work   error
		status int
		line   string
	}{
		"a command that does its work": {args: []string{"work"}},
		"an error": {args: []string{"work"}, work: errors.New("no luck"),
			status: 1, line: "tool: no luck"},
		"an error of several lines": {args: []string{"work"},
			work: errors.Join(errors.New("no"), errors.New("luck")), status: 1, line: "tool: no luck"},
		"bad input, wrapped": {args: []string{"work"},
			work: fmt.Errorf("reading: %w", BadInput(errors.New("x"))), status: 2, line: "tool: reading: x"},
		"a status of its own": {args: []string{"work"},
			work: WithStatus(errors.New("it holds"), 3), status: 3, line: "tool: it holds"},
		"an unknown command":                    {args: []string{"wrok"}, status: 2, line: `tool: unknown command "wrok" for "tool" Did you mean this? work; see "tool --help"`},
		"an unknown flag":                       {args: []string{"work", "--x"}, status: 2, line: `tool: unknown flag: --x; see "tool work --help"`},
		"help with a command that is not there": {args: []string{"help", "wrok"}, status: 2, line: `tool: there is no command "wrok" to help with`},
		"an argument where none belongs":        {args: []string{"work", "x"}, status: 2, line: `tool: unknown command "x" for "tool work"; see "tool work --help"`},
		"a flag without its value":              {args: []string{"needs", "--file"}, status: 2, line: `tool: flag needs an argument: --file; see "tool needs --help"`},
		"a flag that is required":               {args: []string{"needs"}, status: 2, line: `tool: required flag(s) "file" not set; see "tool needs --help"`},
		"a command's error that the context's end looks like": {args: []string{"work"}, work: context.Canceled, status: 1,
			line: "tool: context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := tree(func(context.Context) error { return test.work })
			root.SetArgs(test.args)
			var stderr bytes.Buffer
			status := run(root, &stderr, make(chan os.Signal), time.Hour)
			want := ""
			if test.line != "" {
				want = test.line + "\n"
			}
			if status != test.status || stderr.String() != want {
				t.Errorf("status %d, %q; want %d, %q", status, stderr.String(), test.status, want)
			}
		})
	}
}

func TestASignalEndsACommand(t *testing.T) {
	t.Parallel()
	obedient := func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("listing: %w", context.Cause(ctx)) }
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	deaf := func(context.Context) error { <-over; return nil }
	done := func(ctx context.Context) error { <-ctx.Done(); return nil }
	for name, test := range map[string]struct {
		work    func(context.Context) error
		inOrder bool
		grace   time.Duration
		signals []os.Signal
		status  int
		line    string
	}{
		"Ctrl-C": {work: obedient, grace: time.Hour, signals: []os.Signal{os.Interrupt}, status: 130,
			line: "tool: interrupted\n"},
		"a termination": {work: obedient, grace: time.Hour,
			signals: []os.Signal{syscall.SIGTERM}, status: 143, line: "tool: terminated\n"},
		"a command that does not listen": {work: deaf, signals: []os.Signal{os.Interrupt}, status: 130,
			line: "tool: interrupted\n"},
		"a second Ctrl-C where the first is being obeyed": {work: deaf, inOrder: true,
			signals: []os.Signal{os.Interrupt, os.Interrupt}, status: 130, line: "tool: interrupted\n"},
		"a command that was done all the same": {work: done, grace: time.Hour, signals: []os.Signal{os.Interrupt}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := make(chan struct{})
			root := tree(func(ctx context.Context) error { close(begun); return test.work(ctx) })
			root.SetArgs([]string{"work"})
			if test.inOrder {
				work, _, _ := root.Find([]string{"work"})
				EndInOrder(work)
			}
			signals := make(chan os.Signal)
			go func() {
				<-begun
				for _, s := range test.signals {
					signals <- s
				}
			}()
			var stderr bytes.Buffer
			if status := run(root, &stderr, signals, test.grace); status != test.status || stderr.String() != test.line {
				t.Errorf("status %d, %q; want %d, %q", status, stderr.String(), test.status, test.line)
			}
		})
	}
}

func TestOneThatEndsInOrderIsGivenItsTime(t *testing.T) {
	t.Parallel()
	begun, cleaned := make(chan struct{}), make(chan struct{})
	root := tree(func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		<-time.After(20 * time.Millisecond) // longer than the grace of others, which is none
		close(cleaned)
		return context.Cause(ctx)
	})
	work, _, _ := root.Find([]string{"work"})
	EndInOrder(work)
	root.SetArgs([]string{"work"})
	signals := make(chan os.Signal)
	go func() { <-begun; signals <- os.Interrupt }()
	var stderr strings.Builder
	status := run(root, &stderr, signals, 0)
	select {
	case <-cleaned:
	default:
		t.Error("it was left in the middle")
	}
	if status != 130 {
		t.Errorf("status %d, want 130", status)
	}
}
