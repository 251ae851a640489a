// Package examples_test looks at the folders of the examples.
package examples_test

import (
	"os"
	"strings"
	"testing"

	"berth.dev/berth/test/harness/require"
)

func TestTheIndexListsEveryExample(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile("README.md")
	require.NoError(t, err)
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.IsDir() && !strings.Contains(string(index), "]("+entry.Name()+"/README.md)") {
			t.Errorf("README.md has no link to %s", entry.Name())
		}
	}
}
