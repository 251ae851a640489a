package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// closedKubeconfig names an API server that refuses every connection at once: what boots with it waits for no network.
const closedKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: closed, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: closed, context: {cluster: closed, user: nobody}}]
users: [{name: nobody}]
current-context: closed
`

// withKubeconfig copies a configuration to where a test may write and points its client at an API server that is not
// there. A scheduler that is given --config takes the kubeconfig from nowhere else.
func withKubeconfig(t *testing.T, config []byte) string {
	t.Helper()
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	file := filepath.Join(dir, "scheduler-config.yaml")
	config = bytes.ReplaceAll(config, []byte("  kubeconfig: /etc/kubernetes/scheduler.conf\n"), nil)
	pointed := bytes.Replace(config, []byte("clientConnection:\n"), []byte("clientConnection:\n  kubeconfig: "+kubeconfig+
		"\n"), 1)
	if bytes.Equal(config, pointed) {
		t.Fatalf("the configuration has no clientConnection:\n%s", config)
	}
	for name, content := range map[string][]byte{kubeconfig: []byte(closedKubeconfig), file: pointed} {
		require.NoError(t, os.WriteFile(name, content, 0o600))
	}
	return file
}

// boot takes a shipped configuration through the scheduler's own start up to the point where it would open its port.
func boot(t *testing.T, file string) *scheduler.Scheduler {
	t.Helper()
	config, err := os.ReadFile(file)
	require.NoError(t, err)
	opts := options.NewOptions()
	opts.ConfigFile = withKubeconfig(t, config)
	opts.SecureServing.BindPort = 0
	_, sched, err := setup(t.Context(), opts)
	if err != nil {
		t.Fatalf("booting %s: %v", file, err)
	}
	return sched
}

// ours is what this distribution adds to a profile: the weights of its Score plugins, who orders the queue, and whose
// Filter and PostFilter come first.
type ours struct {
	QueueSort       []string
	FirstFilters    []string
	FirstPostFilter string
	Weights         map[string]int32
}

// The subtests do not run in parallel: setup writes the process's feature gates and metrics settings.
func TestEveryShippedConfigurationBootsWithItsPlugins(t *testing.T) {
	profile := func(weights map[string]int32) ours {
		return ours{QueueSort: []string{"Coscheduling"}, FirstPostFilter: "Coscheduling", Weights: weights,
			FirstFilters: []string{"NodeUnschedulable", "TaintToleration", "NodeAffinity", "PlacementPolicy", "GPUAware"}}
	}
	second := map[string]ours{
		"gpu-aware-scheduler":      profile(map[string]int32{"GPUAware": 20, "NodeResourcesFit": 1}),
		"cost-optimized-scheduler": profile(map[string]int32{"CostOptimized": 20, "GPUAware": 2, "NodeResourcesFit": 1}),
		"gang-scheduler":           profile(map[string]int32{"NodeResourcesFit": 5}),
		// The name that KubeRay gives to its pods.
		"scheduler-plugins-scheduler": profile(map[string]int32{"NodeResourcesFit": 5}),
		"berth-scheduler":             profile(map[string]int32{"GPUAware": 20, "CostOptimized": 20, "NodeResourcesFit": 1}),
	}
	replacement := map[string]ours{"default-scheduler": profile(map[string]int32{"GPUAware": 20, "NodeResourcesFit": 1})}
	for name, p := range second {
		replacement[name] = p
	}
	for file, want := range map[string]map[string]ours{
		"../../manifests/base/scheduler-config.yaml":            second,
		"../../manifests/replace-default/scheduler-config.yaml": replacement,
		"../../manifests/static-pod/scheduler-config.yaml":      replacement,
	} {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			got := map[string]ours{}
			for name, fwk := range boot(t, file).Profiles {
				list := fwk.ListPlugins()
				o := ours{Weights: map[string]int32{}}
				for _, p := range list.QueueSort.Enabled {
					o.QueueSort = append(o.QueueSort, p.Name)
				}
				for _, p := range list.Filter.Enabled[:5] {
					o.FirstFilters = append(o.FirstFilters, p.Name)
				}
				if enabled := list.PostFilter.Enabled; len(enabled) > 0 {
					o.FirstPostFilter = enabled[0].Name
				}
				for _, p := range list.Score.Enabled {
					switch p.Name {
					case "GPUAware", "CostOptimized", "NodeResourcesFit":
						o.Weights[p.Name] = p.Weight
					}
				}
				got[name] = o
			}
			assert.Equal(t, "profiles", want, got)
		})
	}
}

func TestEveryShippedProfileKeepsTheStockPlugins(t *testing.T) {
	filters := func(fwk framework.Framework) sets.Set[string] {
		names := sets.New[string]()
		for _, p := range fwk.ListPlugins().Filter.Enabled {
			names.Insert(p.Name)
		}
		return names
	}
	want := filters(boot(t, stockConfiguration(t)).Profiles["default-scheduler"])
	for name, fwk := range boot(t, "../../manifests/replace-default/scheduler-config.yaml").Profiles {
		if lost := want.Difference(filters(fwk)); lost.Len() > 0 {
			t.Errorf("profile %s has lost the stock filters %v", name, sets.List(lost))
		}
	}
}

func stockConfiguration(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stock.yaml")
	stock := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nclientConnection:\n  qps: 50\n"
	require.NoError(t, os.WriteFile(file, []byte(stock), 0o600))
	return file
}

// A profile in which one plugin refuses to sign schedules every pod alone, however alike they are.
func TestEveryShippedProfileBatchesIdenticalPods(t *testing.T) {
	member := func(name string) *v1.Pod {
		return st.MakePod().Name(name).UID(name).Namespace("default").Label("job-completion-index", name).
			Req(map[v1.ResourceName]string{"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"}).Obj()
	}
	larger := member("c")
	larger.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = *larger.Spec.Containers[0].Resources.Requests.Memory()
	for name, fwk := range boot(t, "../../manifests/replace-default/scheduler-config.yaml").Profiles {
		a, b := signature(t, fwk, member("a")), signature(t, fwk, member("b"))
		if len(a) == 0 {
			t.Errorf("profile %s signs no pod, so it batches none", name)
			continue
		}
		if !bytes.Equal(a, b) {
			t.Errorf("profile %s signs two members of an indexed Job differently:\n%s\n%s", name, a, b)
		}
		if c := signature(t, fwk, larger); bytes.Equal(a, c) {
			t.Errorf("profile %s signs pods of different size alike: %s", name, a)
		}
	}
}

// signature leaves out what PlacementPolicy signs: all labels, until it has read the policies, and here nothing is
// read.
func signature(t *testing.T, profile framework.Framework, pod *v1.Pod) []byte {
	t.Helper()
	signed := profile.SignPod(t.Context(), pod)
	if len(signed) == 0 {
		return nil
	}
	var fragments map[string]json.RawMessage
	if err := json.Unmarshal(signed, &fragments); err != nil {
		t.Fatalf("reading the signature %s: %v", signed, err)
	}
	delete(fragments, "berth.dev/PlacementPolicy")
	rest, err := json.Marshal(fragments)
	require.NoError(t, err)
	return rest
}

// The options themselves would name neither the plugin nor the argument.
func TestProfilesThatDoNotShareAQueueAreRefusedByTheNameOfTheArgument(t *testing.T) {
	config, err := os.ReadFile("../../manifests/base/scheduler-config.yaml")
	require.NoError(t, err)
	odd := bytes.Replace(config, []byte("profiles:\n"), []byte("profiles:\n"+
		"  - {schedulerName: odd, plugins: {queueSort: {disabled: [{name: '*'}], enabled: [{name: Coscheduling}]}}, "+
		"pluginConfig: [{name: Coscheduling, args: {retryInitialSeconds: 5}}]}\n"), 1)
	opts := options.NewOptions()
	opts.ConfigFile, opts.SecureServing.BindPort = withKubeconfig(t, odd), 0
	const want = "Coscheduling needs the same args in every profile, because it sorts the one queue that they share: " +
		"retryInitialSeconds"
	if _, _, err := setup(t.Context(), opts); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}
