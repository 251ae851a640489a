package access

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: test
clusters:
- {name: here, cluster: {server: "http://127.0.0.1:1"}}
contexts:
- {name: test, context: {cluster: here, namespace: research}}
- {name: other, context: {cluster: here}}
`

// given are the flags of a command that is given these arguments.
func given(t *testing.T, args ...string) (Flags, *cobra.Command) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(kubeconfig), 0o600))
	f, cmd := NewFlags(), &cobra.Command{}
	f.AddTo(cmd, true)
	require.NoError(t, cmd.ParseFlags(append([]string{"--kubeconfig", file}, args...)))
	return f, cmd
}

func TestTheFlagsWinOverTheKubeconfig(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name                      string
		args                      []string
		namespace, given, context string
	}{
		{"without flags the context decides", nil, "research", "", "test"},
		{"a namespace", []string{"-n", "vision"}, "vision", "vision", "test"},
		{"a context without a namespace", []string{"--context", "other"}, "default", "", "other"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f, _ := given(t, tc.args...)
			got := []string{f.Namespace(), f.GivenNamespace(), f.ContextName()}
			assert.Equal(t, "namespace, given namespace and context", []string{tc.namespace, tc.given, tc.context}, got)
			if in := f.In("elsewhere"); in.Namespace() != "elsewhere" || f.Namespace() != tc.namespace {
				t.Errorf("in another namespace: %s, and %s without", in.Namespace(), f.Namespace())
			}
		})
	}
}

func TestAClusterThatDoesNotAnswerSaysHowToNameAnother(t *testing.T) {
	t.Parallel()
	f, cmd := given(t)
	client, err := f.Client()
	require.NoError(t, err)
	_, err = client.Discovery().ServerVersion()
	if !Unreachable(err) || !strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("the error is %v, want one that is said to be unreachable and names --kubeconfig", err)
	}
	complete, _ := cmd.GetFlagCompletionFunc("namespace")
	if names, _ := complete(cmd, nil, ""); len(names) > 0 {
		t.Errorf("a cluster that does not answer has the namespaces %v", names)
	}
}

func TestContextsAreCompletedFromTheKubeconfig(t *testing.T) {
	t.Parallel()
	_, cmd := given(t)
	names, _ := Complete(func(c *clientcmdapi.Config) []string {
		var contexts []string
		for name := range c.Contexts {
			contexts = append(contexts, name)
		}
		slices.Sort(contexts)
		return contexts
	})(cmd, nil, "")
	assert.Equal(t, "contexts", []string{"other", "test"}, names)
}
