package top

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/require"
)

func TestTheViewRunsUntilItIsLeft(t *testing.T) {
	t.Parallel()
	in, keys := io.Pipe()
	t.Cleanup(func() { _ = in.Close() })
	var out bytes.Buffer
	ended := make(chan error, 1)
	source := live().source
	go func() { ended <- Run(t.Context(), source, false, in, &out) }()
	if _, err := keys.Write([]byte("3q")); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, await.Next(t, ended, "the end"))
	if begun, ended := strings.Contains(out.String(), "\x1b[?1049h"), strings.Contains(out.String(),
		"\x1b[?1049l"); !begun || !ended {
		t.Errorf("the terminal was taken: %v, and given back: %v", begun, ended)
	}
}
