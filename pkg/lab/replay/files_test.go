package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"berth.dev/berth/test/harness/require"
)

// pipe makes a named pipe that has this content once.
func pipe(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	go func() {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return // the reader says so
		}
		_, _ = file.WriteString(content)
		_ = file.Close()
	}()
	return path
}

func TestInputsMayBePipes(t *testing.T) {
	t.Parallel()
	const count = 60
	table, documents := "name,cpu_milli,memory_mib,gpus,model\n", ""
	var items []string
	for i := range count {
		table += fmt.Sprintf("n%d,1000,1000,1,Tesla-T4\n", i)
		documents += fmt.Sprintf("---\nkind: Node\nmetadata:\n  name: n%d\n  annotations: {about: %s}\n", i,
			strings.Repeat("x", 2000))
		items = append(items, fmt.Sprintf(`{"kind":"Node","metadata":{"name":"n%d","annotations":{"about":%q}}}`, i, strings.Repeat("x", 2000)))
	}
	for name, nodes := range map[string]string{
		"a table":                         table,
		"documents of YAML":               documents,
		"a long list in one line":         `{"kind":"NodeList","items":[` + strings.Join(items, ",") + "]}",
		"objects in a line each":          strings.Join(items, "\n"),
		"a list after a long comment":     "# " + strings.Repeat("x", 100_000) + "\n" + `{"kind":"NodeList","items":[` + strings.Join(items, ",") + "]}",
		"a list in YAML in one long line": "{kind: NodeList, items: [" + strings.Join(items, ",") + "]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := Files{
				Nodes: pipe(t, nodes), Jobs: pipe(t, "name,cpu_milli,memory_mib,gpus\nj,1000,512,1\n"),
				Prices: pipe(t, "resource,dollars_per_hour\nTesla-T4,1\n"),
			}
			in, err := f.Load()
			require.NoError(t, err)
			if nodes := objectsOf(t, in); len(nodes) != count || len(in.Jobs) != 1 {
				t.Errorf("%d nodes and %d jobs, want %d and 1", len(nodes), len(in.Jobs), count)
			}
		})
	}
}
