package tool_test

import (
	"strconv"
	"strings"
	"testing"
)

func TestWhatNeverStartsIsFound(t *testing.T) {
	t.Parallel()
	const (
		configuration = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {qps: 2000}
percentageOfNodesToScore: 100
profiles:
- schedulerName: cheap
  plugins:
    multiPoint: {enabled: [{name: CostOptimized, weight: 20}, {name: Coscheduling}]}
    queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
    postFilter: {enabled: [{name: Coscheduling}]}
  pluginConfig:
  - {name: PodTopologySpread, args: {defaultingType: List}}
  - name: Coscheduling
    args: {sla: {classes: [{name: gold, deadlineSeconds: 60}]}}
  - name: CostOptimized
    args: {windows: [{name: night, from: "22:00", to: "06:00"}]}
- schedulerName: plain
  plugins:
    multiPoint: {enabled: [{name: Coscheduling}]}
    postFilter: {enabled: [{name: Coscheduling}]}
    queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
  pluginConfig:
  - {name: PodTopologySpread, args: {defaultingType: List}}
  - name: Coscheduling
    args: {sla: {classes: [{name: gold, deadlineSeconds: 60}]}}
---
`
		group = "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: train}\nspec:\n  minMember: 8\n" +
			"---\n"
	)
	line := strings.Count(configuration, "\n")
	job := func(parallelism, labels string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\nspec:\n" + parallelism +
			"  template:\n    metadata:\n      labels: {" + labels +
			"}\n    spec: {restartPolicy: Never, containers: [{name: c, image: i}]}\n"
	}
	pod := func(scheduler, annotation string, requests string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations:\n    " + annotation +
			"\nspec:\n  schedulerName: " + scheduler +
			"\n  containers:\n  - name: c\n    image: i\n    resources: {limits: {" + requests + "}}\n"
	}
	node := func(name, gpus, cpu string) string {
		return "apiVersion: v1\nkind: Node\nmetadata: {name: " + name +
			", labels: {nvidia.com/gpu.product: Tesla-T4}}\nstatus: {allocatable: {cpu: " + cpu + ", nvidia.com/gpu: " + gpus +
			"}}\n---\n"
	}
	const member = "scheduling.x-k8s.io/pod-group: train"
	at := func(n int, text string) string { return "f.yaml:" + strconv.Itoa(line+n) + text }
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"a gang of which the file makes too few", group + job("  parallelism: 4\n", member), []string{
			"f.yaml:5: warning: PodGroup train: PodGroup train starts with 8 pods, and the files make 4: the pods wait until " +
				"there are more (too-few)"}},
		{"a Job that has fewer completions than that", group + job("  parallelism: 8\n  completions: 4\n", member),
			[]string{"f.yaml:5: warning: PodGroup train: PodGroup train starts with 8 pods, and the files make 4"}},
		{"as many as are needed", group + job("  parallelism: 8\n  backoffLimit: 8\n", member), nil},
		{"two Jobs that are enough together", group + job("  parallelism: 4\n", member) + "---\n" +
			strings.Replace(job("  parallelism: 4\n", member), "name: train", "name: other", 1), nil},
		{"a group whose pods are made elsewhere", group, nil},
		{"a group of which an object of another kind speaks", group + job("  parallelism: 4\n", member) +
			"---\napiVersion: example.com/v1\nkind: Trainer\nmetadata: {name: x}\nspec: {group: train}\n", nil},
		{"labels that ask for more than the Job makes",
			job("  parallelism: 2\n",
				"pod-group.scheduling.sigs.k8s.io/name: g, pod-group.scheduling.sigs.k8s.io/min-available: '3'"), []string{
				"f.yaml:7: warning: Job train: gang g starts with 3 pods, and the files make 2"}},

		{"a window that the profile has", configuration + pod("cheap", "berth.dev/start-window: night", "cpu: 1"), nil},
		{"a window that the profile lacks", configuration + pod("cheap", "berth.dev/start-window: nigth", "cpu: 1"), []string{
			at(6, `: warning: Pod p: there is no window "nigth" in the args of profile cheap, which has night: the pod never starts (no-window)`)}},
		{"a window and a stance to spot of a profile without prices", configuration +
			pod("plain", "berth.dev/start-window: night\n    berth.dev/spot: require", "cpu: 1"), []string{
			at(6, ": warning: Pod p: profile plain: annotation berth.dev/start-window has no effect, because CostOptimized is "+
				"not enabled: the pod waits for no window (no-effect)"),
			at(7, ": warning: Pod p: profile plain: annotation berth.dev/spot has no effect, because CostOptimized is not "+
				"enabled: the pod may run on spot capacity and elsewhere alike (no-effect)")}},
		{"a class that the profile has", configuration + pod("cheap", "berth.dev/sla-class: gold", "cpu: 1"), nil},
		{"a class that the profile lacks", configuration + pod("cheap", "berth.dev/sla-class: silver", "cpu: 1"), []string{
			at(6, `: warning: Pod p: profile cheap: annotation berth.dev/sla-class: "silver" is not one of the classes open to pods of PriorityClass "": "gold": the pod never starts (no-class)`)}},
		{"more GPUs than a node has", node("a", "8", "64") + node("b", "4", "64") +
			pod("cheap", "x: z", "nvidia.com/gpu: 16"), []string{
			"f.yaml:22: warning: Pod p: no node in the files has 16 nvidia.com/gpu; the largest has 8: the pod starts on none " +
				"of them (too-large)"}},
		{"more than a node has together", node("a", "8", "16") + node("b", "1", "64") +
			pod("cheap", "x: z", "nvidia.com/gpu: 8, cpu: 32"), []string{
			"f.yaml:22: warning: Pod p: no node in the files has 32 cpu, 8 nvidia.com/gpu together: the pod starts on none of " +
				"them (too-large)"}},
		{"as much as the largest node has", node("a", "8", "64") + node("b", "1", "8") +
			pod("cheap", "x: z", "nvidia.com/gpu: 8, cpu: 64"), nil},
		{"more than nodes of which nothing is known", pod("cheap", "x: z", "nvidia.com/gpu: 16"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range findings(t, tt.text) {
				// What the configuration itself is warned of is not asked here.
				if !strings.Contains(f, ": note: ") && (strings.Contains(f, ": Pod p: ") || !strings.Contains(f, "profile ")) {
					got = append(got, f)
				}
			}
			sameBeginnings(t, got, tt.want)
		})
	}
}

// All args are checked before any plugin is made, in the order of the file.
func TestErrorsOfAllArgsComeTogetherAndInOrder(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: p
  plugins:
    multiPoint: {enabled: [{name: GPUAware, weight: 20}, {name: CostOptimized, weight: 20}, {name: Coscheduling}, {name: NetworkTopology, weight: 20}, {name: IPReservation}]}
    queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
  pluginConfig:
  - name: NetworkTopology
    args: {levels: [{name: a b}]}
  - name: IPReservation
    args: {addressAnnotation: "a b"}
  - name: CostOptimized
    args:
      thetaPercent: 101
      growthPercent: -1
  - name: Coscheduling
    args: {retryMaxSeconds: -1}
  - name: GPUAware
    args: {minMemoryMiB: -1}
`
	want := []string{"pluginConfig[NetworkTopology]", "pluginConfig[IPReservation]",
		"pluginConfig[CostOptimized].args.thetaPercent", "pluginConfig[CostOptimized].args.growthPercent",
		"pluginConfig[Coscheduling]", "pluginConfig[GPUAware].args.minMemoryMiB"}
	for range 5 {
		got := findings(t, text)
		at := 0
		for _, f := range got {
			if at < len(want) && strings.Contains(f, want[at]) {
				at++
			}
		}
		if at < len(want) {
			t.Fatalf("%s is not there or not in this order:\n%s", want[at], strings.Join(got, "\n"))
		}
	}
}
