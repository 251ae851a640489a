package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestACommandSpeaksOfItselfByTheNameThatItWasCalledBy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		executable string
		args       []string
		want       []string
		never      string
	}{
		"by its own name": {"/usr/bin/tool", []string{"work", "--help"},
			[]string{"tool work [flags]", "  tool work --fast", "  ./tool is left"}, "kubectl"},
		"by the name of another tool": {"kubectl-other", []string{"work", "--help"}, []string{"  tool work --fast"},
			"kubectl"},
		"as a plugin of kubectl": {"/usr/local/bin/kubectl-tool", []string{"work", "--help"},
			[]string{"kubectl tool work [flags]", "  kubectl tool work --fast", "  ./tool is left"}, "\n  tool work"},
		"as the completion of a plugin": {"kubectl_complete-tool", []string{""}, []string{"work"}, "Usage"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := &cobra.Command{Use: "tool"}
			root.AddCommand(&cobra.Command{Use: "work", Example: "  tool work --fast\n  ./tool is left",
				Run: func(*cobra.Command, []string) {}})
			root.SetArgs(test.args)
			var out bytes.Buffer
			root.SetOut(&out)
			root.SetErr(&bytes.Buffer{})
			AsKubectlPlugin(root, test.executable, test.args)
			require.NoError(t, root.Execute())
			assert.Contains(t, out.String(), test.want...)
			if strings.Contains(out.String(), test.never) {
				t.Errorf("%q is in:\n%s", test.never, out.String())
			}
		})
	}
}
