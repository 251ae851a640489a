package nvidiasmi

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/nodeagent/nvidiasmi/nvidiasmitest"
)

func TestMinorNumbersBelongToTheGPUAboveThem(t *testing.T) {
	t.Parallel()
	tool := New(nvidiasmitest.Program(t, `[ "$*" = -q ] && cat `+testdataPath(t, "query-4.txt")), time.Minute)
	got, err := tool.Minors(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{uuid(0): 2, uuid(1): 3, uuid(2): 0}, got); diff != "" {
		t.Errorf("minor numbers (-want +got):\n%s", diff)
	}
}

func TestAReportThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	one := func(bus, id, minor string) string {
		return "GPU 00000000:" + bus + ":00.0\n    GPU UUID : " + id + "\n    Minor Number : " + minor + "\n"
	}
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                 {"", "no GPU in it"},
		"an error of the driver":  {"Unable to determine the device handle for GPU 0000:3B:00.0\n", "no GPU in it"},
		"one number for two GPUs": {one("07", uuid(0), "1") + one("0F", uuid(1), "1"), "minor number 1 of " + uuid(0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := parseMinors(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("minor numbers %v, error %v, want one with %q", got, err, tc.want)
			}
		})
	}
	// The UUID of a GPU says nothing of the next.
	if got, err := parseMinors(one("07", uuid(0), "N/A") + "GPU 00000000:0F:00.0\n    Minor Number : 1\n"); err != nil ||
		len(got) != 0 {
		t.Errorf("minor numbers %v, error %v, want none", got, err)
	}
}

func FuzzMinors(f *testing.F) {
	f.Add(testdata(f, "query-4.txt"))
	f.Fuzz(func(t *testing.T, text string) {
		minors, err := parseMinors(text)
		if err != nil {
			return
		}
		seen := map[int]bool{}
		for id, minor := range minors {
			if id == "" || minor < 0 || minor > 999 || seen[minor] {
				t.Fatalf("minor numbers %v", minors)
			}
			seen[minor] = true
		}
	})
}
