package command

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestValuesOfFlagsAreCompleted(t *testing.T) {
	t.Parallel()
	root := &cobra.Command{Use: "tool", SilenceErrors: true}
	work := &cobra.Command{Use: "work", Run: func(*cobra.Command, []string) {}}
	flags := work.Flags()
	flags.Int("count", 1, "")
	flags.String("profile", "", "")
	flags.String("color", "", "")
	flags.String("file", "", "")
	flags.String("folder", "", "")
	flags.Bool("fast", false, "")
	_ = work.MarkFlagFilename("file", "yaml")
	_ = work.MarkFlagDirname("folder")
	_ = work.RegisterFlagCompletionFunc("color",
		cobra.FixedCompletions([]string{"red"}, cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(work)
	profiles := cobra.FixedCompletions([]string{"a", "b"}, cobra.ShellCompDirectiveNoFileComp)
	require.NoError(t, Complete(root, map[string]cobra.CompletionFunc{"profile": profiles}))
	for _, test := range []struct{ line, want string }{
		{"work --count ", ":4"},
		{"work --profile ", "a b :4"},
		{"work --color ", "red :4"},
		{"work --file ", "yaml :8"},
		{"work --folder ", ":16"},
		{"work ", ":4"},
	} {
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&bytes.Buffer{})
		root.SetArgs(append([]string{cobra.ShellCompNoDescRequestCmd}, strings.Split(test.line, " ")...))
		require.NoError(t, root.Execute())
		assert.Equal(t, fmt.Sprintf("after %q", test.line), test.want, strings.Join(strings.Fields(out.String()), " "))
	}
}
