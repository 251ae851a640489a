package release_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// shows is what commands of the page print once the cluster has done its part.
var shows = map[string]string{
	"kubectl get pods -o wide":              "gang-training-7.* Running .* a100-",
	"kubectl get podgroups.":                "gang-training +Running +8",
	"bin/berth explain pod ":                "GPUAware in milli-GPU",
	"kubectl get events ":                   "gang-too-large.*nvidia.com/gpu",
	"bin/berth dump --file cluster.dump":    "40 nodes",
	"bin/berth compare --a manifests/base/": "Scheduler CPU per pod",
}

// worksWordByWord runs the commands of the page for the start one after the other in one shell, as a reader has it, in
// a folder that looks like a checkout. The reader's own cluster is a second control plane, to which kubectl goes where
// nothing else is said.
func worksWordByWord(t *testing.T, own *box.Box) {
	page, err := os.ReadFile(filepath.Join(box.Root(t), "docs", "getting-started.md"))
	require.NoError(t, err)
	local, _, found := strings.Cut(string(page), "\n## On your cluster\n")
	if !found {
		t.Fatal("the page has no part On your cluster, before which the commands are for a local one")
	}
	folder, home := checkout(t), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, ".kube"), 0o700))
	require.NoError(t, os.Symlink(own.Kubeconfig(), filepath.Join(home, ".kube", "config")))

	shown := map[string]bool{}
	script := []string{"trap 'cat output || true; bin/berth down >/dev/null 2>&1 || true' EXIT"}
	for _, command := range indented(local) {
		if command == "make build" {
			continue // the test needs it to have run
		}
		script = append(script, fmt.Sprintf("echo %q", "$ "+strings.NewReplacer("$", `\$`, `"`, "'").Replace(command)))
		wanted := ""
		for start, want := range shows {
			if strings.HasPrefix(command, start) {
				wanted, shown[start] = want, true
			}
		}
		if wanted == "" {
			script = append(script, command)
			continue
		}
		// The shell is that of the commands before. The deadline ends it.
		script = append(script,
			fmt.Sprintf("until { %s ; } >output 2>&1 && grep -qE -- %q output; do sleep 0.2; done; cat output", command, wanted))
	}
	for start := range shows {
		if !shown[start] {
			t.Errorf("no command of the page starts with %q", start)
		}
	}
	// A kubeconfig of the environment of the test would not be the reader's.
	said, err := bash(t, folder, strings.Join(script, "\n"), 15*time.Minute, "HOME="+home,
		"KUBECONFIG="+filepath.Join(home, ".kube", "config"))
	if err != nil {
		t.Fatalf("%v:\n%s", err, said)
	}
	if report, err := os.Stat(filepath.Join(folder, "report.html")); err != nil || report.Size() == 0 {
		t.Errorf("no report.html: %v\n%s", err, said)
	}
}

// indented are the commands of a page: its indented lines; one that ends in a backslash goes on in the next.
func indented(page string) []string {
	var found []string
	for line := range strings.Lines(strings.ReplaceAll(page, "\\\n", " ")) {
		if command, is := strings.CutPrefix(line, "    "); is {
			found = append(found, strings.TrimSpace(command))
		}
	}
	return found
}
