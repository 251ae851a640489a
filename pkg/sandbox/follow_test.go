package sandbox_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"berth.dev/berth/pkg/sandbox"
)

func TestTheSchedulerFollowsItsConfigurationFile(t *testing.T) {
	t.Parallel()
	const config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: {resourceName: berth-scheduler}\n" +
		"profiles: [{schedulerName: berth-scheduler}]\n"
	file := filepath.Join(t.TempDir(), "config.yaml")
	write := func(content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(config)
	sb := start(t, sandbox.Options{SchedulerConfig: file, NoKubelet: true})
	pid, err := sb.PID("scheduler")
	if err != nil {
		t.Fatal(err)
	}
	says := func(text string) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, startTimeout, true, func(context.Context) (bool, error) {
			log, err := os.ReadFile(filepath.Join(sb.LogDir(), "scheduler.log"))
			return err == nil && strings.Contains(string(log), text), err
		})
		if err != nil {
			t.Fatalf("waiting for %q in the scheduler's log: %v", text, err)
		}
	}
	write(config + "podMaxBackoffSecond: 5\n")
	says("The configuration cannot be used")
	write(config + "podMaxBackoffSeconds: 5\n")
	says("The changed configuration is in force")
	if now, err := sb.PID("scheduler"); err != nil || now != pid {
		t.Errorf("the scheduler's process is %d (%v), want %d: it must not have been restarted", now, err, pid)
	}
}
