package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"berth.dev/berth/pkg/output"
	"berth.dev/berth/pkg/sandbox/demo"
	"berth.dev/berth/pkg/screen/command"
	"berth.dev/berth/pkg/screen/progress"
)

func newDemoCommand() *cobra.Command {
	var opts demo.Options
	var format output.Format
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the scheduler at work on forty GPU nodes",
		Long: `Bring up a local cluster of forty GPU nodes of five shapes, run five workloads on it (the files of
manifests/examples), print where each runs and why one waits, check the outcome, and stop everything.

The gang that does not fit is created first: all that is placed after it shows that it holds nothing.

Exit status: 0 when every check holds, 1 otherwise.`,
		Example: `  berth demo
  # Leave the cluster up, to look around with kubectl
  berth demo --keep`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), opts, format)
		},
	}
	command.EndInOrder(cmd)
	cmd.Flags().StringVar(&opts.Dir, "dir", "", "folder of the sandbox (default: a temporary one, or .berth with --keep)")
	cmd.Flags().BoolVar(&opts.Keep, "keep", false, "leave the cluster up and print its kubeconfig")
	cmd.Flags().StringVar(&opts.APIServer, "kube-apiserver", "",
		"kube-apiserver executable to run instead of the built-in one, up to three minors older")
	if err := cmd.Flags().MarkHidden("kube-apiserver"); err != nil {
		panic(err)
	}
	format.AddTo(cmd)
	return cmd
}

func runDemo(ctx context.Context, out, messages io.Writer, opts demo.Options, format output.Format) error {
	outcome, err := demo.Run(ctx, opts, progress.Steps(messages))
	if outcome == nil {
		return err
	}
	if format != output.Table {
		return errors.Join(err, output.Write(out, format, outcome))
	}
	if printErr := outcome.WriteTable(out); printErr != nil {
		return errors.Join(err, printErr)
	}
	fmt.Fprint(messages, whatToTry(os.Args[0], outcome.Dir, outcome.Kubeconfig))
	if outcome.Kubeconfig != "" {
		fmt.Fprintf(out, "KUBECONFIG=%s\n", outcome.Kubeconfig)
	}
	return err
}

// whatToTry suggests commands to run next, in a form that can be pasted into a shell.
func whatToTry(berth, dir, kubeconfig string) string {
	berth = shellWord(berth)
	if kubeconfig == "" {
		return fmt.Sprintf(`
What next?

  The same, on a cluster that stays up
      %[1]s demo --keep

  What else there is
      %[1]s
`, berth)
	}
	return fmt.Sprintf(`
The cluster stays up. What next?

  Why the large gang waits
      %[1]s explain job/gang-too-large --kubeconfig %[2]s

  Every GPU and what waits, live
      %[1]s top --kubeconfig %[2]s

  The same in a browser
      %[1]s dashboard --kubeconfig %[2]s

  Stop it
      %[1]s down --dir %[3]s
`, berth, shellWord(kubeconfig), shellWord(dir))
}

// shellWord quotes a word for a shell if that is necessary.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:=@%,", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
