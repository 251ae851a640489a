package sandbox_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/require"
)

func TestBadInputStartsNothing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "nodes.yaml")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	two := filepath.Join(t.TempDir(), "two.yaml")
	require.NoError(t, os.WriteFile(two, []byte("shapes: [{name: a, count: 2, allocatable: {cpu: 1}}]"), 0o600))
	// Nothing is executed, but both have to be there.
	bin := t.TempDir()
	for _, name := range []string{"berth", "berth-scheduler"} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), nil, 0o600))
	}
	tests := []struct {
		name string
		opts sandbox.Options
		want string
	}{
		{"a nodes file that is not there", sandbox.Options{NodesFile: "/does/not/exist"}, "/does/not/exist: no such file"},
		{"a malformed nodes file", sandbox.Options{NodesFile: file}, file},
		{"a scheduler configuration that is not there", sandbox.Options{SchedulerConfig: "/does/not/exist"},
			"/does/not/exist: no such file"},
		{"controllers by name where all of them run", sandbox.Options{Controllers: []string{"job-controller"}},
			"makes no sense without NoKubelet"},
		{"a scheduler configuration without a scheduler", sandbox.Options{SchedulerConfig: file, NoScheduler: true},
			"makes no sense without the scheduler"},
		{"a port that none is", sandbox.Options{Port: 70000}, "port 70000: must be 0 (any free port) to 65535"},
		{"a scale without nodes", sandbox.Options{Scale: 9}, "scale 9: makes no sense without a file of nodes to copy"},
		{"a scale below the nodes", sandbox.Options{NodesFile: two, Scale: 1},
			"scale 1: must be 2 (the number of nodes given) to 20000"},
		{"a scale above the largest", sandbox.Options{NodesFile: two, Scale: 20001},
			"scale 20001: must be 2 (the number of nodes given) to 20000"},
		{"a negative scale", sandbox.Options{NodesFile: two, Scale: -3}, "scale -3: must be 2"},
		{"the replacement for the default scheduler without a scheduler",
			sandbox.Options{ReplaceDefault: true, NoScheduler: true}, "makes no sense without the scheduler"},
		{"two configurations", sandbox.Options{ReplaceDefault: true, SchedulerConfig: file},
			"the scheduler has one configuration"},
		{"a scheduler configuration that cannot be followed", sandbox.Options{SchedulerConfig: os.DevNull},
			"must be a regular file"},
		{"a folder that is a file", sandbox.Options{Dir: file}, "not a directory"},
		{"a folder that holds something else", sandbox.Options{Dir: filepath.Dir(file)}, "is not empty and holds no sandbox"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.opts.Dir == "" {
				tt.opts.Dir = filepath.Join(t.TempDir(), "of", "sandbox")
			}
			tt.opts.Binary = filepath.Join(bin, "berth")
			sb, err := sandbox.Start(t.Context(), tt.opts, nil)
			if err == nil {
				t.Error("it started", sb.Stop())
				return
			}
			if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got error %q, want one line with %q", err, tt.want)
			}
			if made := filepath.Dir(tt.opts.Dir); filepath.Base(made) == "of" {
				if _, err := os.Stat(made); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s is left behind (%v)", made, err)
				}
			}
			if !errors.As(err, new(sandbox.InputError)) {
				t.Errorf("error %q is not one of the input", err)
			}
		})
	}
}
