package schedulerconfig

import (
	"os"
	"strings"
	"testing"
)

// shipped is the configuration that this distribution ships.
const shipped = "../../manifests/base/scheduler-config.yaml"

func TestBadConfigurations(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"configuration.go", "absent.yaml"} {
		_, err := Load(file)
		if err == nil || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error is not a line with the file's name: %v", file, err)
		}
	}
}

func TestProfilesThatDoNotSortTheQueueAlike(t *testing.T) {
	t.Parallel()
	profile := func(name, sorter, args string) string {
		return "- {schedulerName: " + name + ", plugins: {queueSort: {disabled: [{name: '*'}], enabled: [{name: " + sorter +
			"}]}}, " +
			"pluginConfig: [{name: Coscheduling, args: {" + args + "}}]}\n"
	}
	for name, tc := range map[string]struct{ profiles, want string }{
		"args": {profile("a", "Coscheduling", "retryInitialSeconds: 5") + profile("b", "Coscheduling", ""),
			"f: profiles[1].pluginConfig[Coscheduling].args: Coscheduling needs the same args in every profile, because it " +
				"sorts the one queue that they share: " +
				"retryInitialSeconds of profile b and of a differ"},
		"args of scheduler-plugins": {profile("a", "Coscheduling", "permitWaitingTimeSeconds: 10, podGroupBackoffSeconds: 5"),
			`f: strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for plugin ` +
				`Coscheduling: strict decoding error: unknown field "permitWaitingTimeSeconds", unknown field ` +
				`"podGroupBackoffSeconds"; instead of permitWaitingTimeSeconds, Coscheduling has scheduleTimeoutSeconds; ` +
				"instead of podGroupBackoffSeconds, Coscheduling has retryInitialSeconds"},
		"plugins": {profile("a", "Coscheduling", "") + profile("b", "Coscheduling", "") + profile("c", "PrioritySort", ""),
			"f: profiles[2].plugins.queueSort: every profile needs the same queueSort plugin, because they share one queue: c " +
				"has PrioritySort, a has Coscheduling"},
		"and another mistake": {profile("a", "Coscheduling", "") + profile("a", "Coscheduling", "recoverySeconds: 1"),
			`f: [profiles[1].schedulerName: Duplicate value: {}, profiles[1].pluginConfig[Coscheduling].args: Coscheduling needs the same args in every profile, ` +
				"because it sorts the one queue that they share: recoverySeconds of profile a and of a differ]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("f",
				[]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"+tc.profiles))
			if err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	data, err := os.ReadFile(shipped)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
		"profiles: [{pluginConfig: [{name: GPUAware, args: {strategy: 1}}]}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f: ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is not a line that begins with the file: %q", err)
			}
			return
		}
		if _, err := c.Profile(""); err != nil {
			t.Error(err)
		}
		c.WithoutSignals()
	})
}
