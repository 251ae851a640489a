package replays

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadPublished(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		want       []Published
		wrong      string
	}{
		{"seconds", "job,submit_s,duration_s,gpus\n0,5,60,8\n", []Published{{SubmitSeconds: 5, RunSeconds: 60, GPUs: 8}}, ""},
		{"minutes, a user and a class", "job,user,submit_min,duration_min,gpus,best_effort\n0,u,1,2,1,1\n",
			[]Published{{User: "u", SubmitSeconds: 60, RunSeconds: 120, GPUs: 1, BestEffort: "1"}}, ""},
		{"a deadline, and a job without one", "submit_min,duration_min,gpus,deadline_min\n1,2,1,30\n1,2,1,\n",
			[]Published{{SubmitSeconds: 60, RunSeconds: 120, GPUs: 1, DeadlineSeconds: 1800},
				{SubmitSeconds: 60, RunSeconds: 120, GPUs: 1}}, ""},
		{"no jobs", "submit_s,duration_s,gpus\n", []Published{}, ""},
		{"nothing", "", nil, "no line with the names"},
		{"a column that is not there", "submit_s,gpus\n0,1\n", nil, "column duration_s"},
		{"text where a number belongs", "submit_s,duration_s,gpus\n0,1,all\n", nil, "column gpus"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "trace.csv")
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ReadPublished(file)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Fatalf("the error is %v, want %q", err, tc.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
		})
	}
}
