package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestLastLogLine(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, log, want string }{
		{"the error of a klog line is unquoted", "I1121 10:00:00.1 1 a.go:1] \"fine\"\nE1121 10:03:03.475299     728 run.go:72] \"command failed\" err=\"unknown field \\\"x\\\"\"\n\n", `unknown field "x"`},
		{"a klog line without an error keeps its message", "E1121 10:03:03.475299 728 run.go:72] \"it stopped\" n=3\n", `"it stopped" n=3`},
		{"a line by anybody else is kept as it is", "panic: no\n", "panic: no"},
		{"an error that is cut off in the middle is kept as it is", "x err=\"half\\", "x err=\"half\\"},
		{"an empty log says nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
			require.NoError(t, os.WriteFile(path, []byte(tt.log), 0o600))
			assert.Equal(t, "", tt.want, LastLogLine(path))
		})
	}
}
