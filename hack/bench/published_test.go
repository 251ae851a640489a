package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestReadPublished(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		want       []published
		wrong      string
	}{
		{"seconds", "job,submit_s,duration_s,gpus\n0,5,60,8\n", []published{{submitSeconds: 5, runSeconds: 60, gpus: 8}}, ""},
		{"minutes and a user", "job,user,submit_min,duration_min,gpus\n0,u,1,2,1\n",
			[]published{{user: "u", submitSeconds: 60, runSeconds: 120, gpus: 1}}, ""},
		{"no jobs", "submit_s,duration_s,gpus\n", []published{}, ""},
		{"nothing", "", nil, "no line with the names"},
		{"a column that is not there", "submit_s,gpus\n0,1\n", nil, "column duration_s"},
		{"text where a number belongs", "submit_s,duration_s,gpus\n0,1,all\n", nil, "column gpus"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "trace.csv")
			require.NoError(t, os.WriteFile(file, []byte(tc.text), 0o600))
			got, err := readPublished(file)
			if tc.wrong != "" {
				assert.Contains(t, fmt.Sprint(err), tc.wrong)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, "jobs", tc.want, got, cmp.AllowUnexported(published{}))
		})
	}
}
