package tools_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// closedKubeconfig names an API server that refuses every connection at once.
const closedKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: closed, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: closed, context: {cluster: closed, user: nobody}}]
users: [{name: nobody}]
current-context: closed
`

// scheduler starts the scheduler, which does not get far, and returns its exit status and what it says.
func scheduler(t *testing.T, args ...string) (status int, said string) {
	t.Helper()
	status, _, said = run(t, "berth-scheduler", append(args, "--secure-port=0")...)
	return status, said
}

// configuration returns one profile with the plugins on and the given args for one of them.
func configuration(t *testing.T, plugin, args string) string {
	t.Helper()
	return write(t, "scheduler-config.yaml", `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: `+write(t, "kubeconfig", closedKubeconfig)+`
  qps: 50
profiles:
  - schedulerName: tuned
    plugins:
      queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
      multiPoint: {enabled: [{name: Coscheduling}, {name: GPUAware, weight: 20}, {name: CostOptimized, weight: 20}]}
    pluginConfig:
      - name: `+plugin+`
        args: `+args+"\n")
}

func TestAWrongArgumentStopsTheStartWithOneLineThatNamesIt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		plugin, args string
		want         []string
	}{
		"a misspelt field of Coscheduling": {
			plugin: "Coscheduling", args: "{scheduleTimeoutSecond: 10}", want: []string{"Coscheduling", `unknown field \"scheduleTimeoutSecond\"`},
		},
		"an unknown enum": {
			plugin: "CostOptimized", args: "{unknownPrice: Neutrall}",
			want: []string{"profiles[tuned].pluginConfig[CostOptimized].args.unknownPrice", "Neutrall", "Neutral", "Avoid",
				"DefaultRates"},
		},
		"a time out of range": {
			plugin: "Coscheduling", args: "{scheduleTimeoutSeconds: 901}",
			want: []string{"profiles[tuned].pluginConfig[Coscheduling].args.scheduleTimeoutSeconds", "901", "900"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stderr := scheduler(t, "--config", configuration(t, test.plugin, test.args))
			if code != 1 {
				t.Errorf("exit status %d, want 1", code)
			}
			failures := 0
			for line := range strings.Lines(stderr) {
				if !strings.Contains(line, "command failed") {
					continue
				}
				failures++
				assert.Contains(t, line, test.want...)
			}
			if failures != 1 {
				t.Errorf("%d lines of failure, want 1:\n%s", failures, stderr)
			}
		})
	}
}

func TestWriteConfigPrintsTheArgsWithTheirDefaults(t *testing.T) {
	t.Parallel()
	written := filepath.Join(t.TempDir(), "written.yaml")
	code, stderr := scheduler(t, "--config", configuration(t, "CostOptimized", "{thetaPercent: 50}"), "--write-config-to",
		written)
	if code != 0 {
		t.Fatalf("exit status %d:\n%s", code, stderr)
	}
	content, err := os.ReadFile(written)
	require.NoError(t, err)
	var config struct {
		Profiles []struct {
			PluginConfig []struct {
				Name string
				Args map[string]any
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(content, &config))
	// What is given, what is left out of an args that is given, and what is left out altogether.
	fields := map[string][]string{
		"CostOptimized": {"apiVersion", "kind", "thetaPercent", "unknownPrice", "spot", "fleet"},
		"GPUAware":      {"apiVersion", "kind", "strategy"},
		"Coscheduling":  {"apiVersion", "kind", "scheduleTimeoutSeconds"},
	}
	got := map[string]map[string]any{}
	for _, p := range config.Profiles[0].PluginConfig {
		for _, field := range fields[p.Name] {
			if got[p.Name] == nil {
				got[p.Name] = map[string]any{}
			}
			got[p.Name][field] = p.Args[field]
		}
	}
	want := map[string]map[string]any{
		"CostOptimized": {
			"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "CostOptimizedArgs",
			"thetaPercent": 50.0, "unknownPrice": "Neutral", "spot": "avoid", "fleet": "Autoscaled",
		},
		"GPUAware": {
			"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "GPUAwareArgs", "strategy": "Pack",
		},
		"Coscheduling": {
			"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "CoschedulingArgs", "scheduleTimeoutSeconds": 60.0,
		},
	}
	assert.Equal(t, "args in the written configuration", want, got)
}

func TestAConfigurationIsWrittenWithoutACluster(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { busy.Close() })
	for name, test := range map[string]struct {
		args  []string
		fails string
		want  string
	}{
		"the shipped configuration": {
			args: []string{"--config=" + manifests(t) + "/base/scheduler-config.yaml"}, want: "schedulerName: gang-scheduler",
		},
		"a configuration with the kubeconfig of another machine": {
			args: []string{"--config=" + manifests(t) + "/static-pod/scheduler-config.yaml"},
			want: "kubeconfig: /etc/kubernetes/scheduler.conf",
		},
		"no configuration at all": {want: "schedulerName: default-scheduler"},
		"flags beside the file": {
			args: []string{"--config=" + manifests(t) + "/base/scheduler-config.yaml", "--leader-elect-resource-name=other"},
			want: "resourceName: other",
		},
		"on a machine where the port is taken": {
			args: []string{"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", busy.Addr().(*net.TCPAddr).Port)},
			want: "schedulerName: default-scheduler",
		},
		"a configuration that is wrong": {
			args: []string{"--config=" + write(t, "wrong.yaml", head+"parallelism: -1\n")}, fails: "parallelism",
		},
		"a kubeconfig that is there and is not one": {
			args: []string{"--config=" + write(t, "config.yaml", head+"clientConnection: {kubeconfig: "+
				write(t, "kubeconfig", "- 1\n")+"}\n")},
			fails: "kubeconfig",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			written := filepath.Join(t.TempDir(), "written.yaml")
			cmd := exec.CommandContext(t.Context(), box.Binary(t, "berth-scheduler"),
				append([]string{"--write-config-to=" + written}, test.args...)...)
			cmd.Env = []string{"HOME=" + t.TempDir()}
			output, err := cmd.CombinedOutput()
			content, _ := os.ReadFile(written)
			if test.fails != "" {
				if err == nil || !strings.Contains(string(output), test.fails) || len(content) > 0 {
					t.Errorf("error %v, %d bytes written; want a failure that says %q:\n%s", err, len(content), test.fails, output)
				}
				return
			}
			if err != nil || !strings.Contains(string(content), test.want) {
				t.Errorf("error %v; want %q in what was written:\n%s\n%s", err, test.want, content, output)
			}
		})
	}
}

func TestEveryStockFlagIsStillThere(t *testing.T) {
	t.Parallel()
	code, stderr := scheduler(t, "--config", "/nonexistent/scheduler-config.yaml", "--leader-elect=false",
		"--feature-gates=GenericWorkload=false")
	if code != 1 || !strings.Contains(stderr, "/nonexistent/scheduler-config.yaml") {
		t.Errorf("exit status %d, want 1 and the name of the missing file:\n%s", code, stderr)
	}
}
