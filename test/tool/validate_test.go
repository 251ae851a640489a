package tool_test

import (
	"strings"
	"testing"

	"berth.dev/berth/pkg/validate"
	"berth.dev/berth/test/harness/require"
)

// configHead begins a configuration that nothing is said against.
const configHead = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {resourceName: mine}
clientConnection: {qps: 2000, burst: 4000}
percentageOfNodesToScore: 100
`

// profileHead begins the one profile of it.
const profileHead = configHead + "profiles:\n- schedulerName: a\n"

// policyHead and nodeHead begin objects.
const (
	policyHead = "apiVersion: berth.dev/v1alpha1\nkind: PlacementPolicy\nmetadata: {name: pp}\n"
	nodeHead   = "apiVersion: v1\nkind: Node\nmetadata:\n  name: nn\n"
)

// configMap begins one that carries files.
const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n"

// quietArgs are the args of a profile whose pods are batched and packed.
const quietArgs = `  pluginConfig:
  - name: PodTopologySpread
    args: {defaultingType: List}
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
`

// plugged is a configuration whose one profile has these plugins and the quiet args.
func plugged(plugins string) string {
	return profileHead + "  plugins: {" + plugins + "}\n" + quietArgs
}

// sortedProfile is a profile whose queue Coscheduling sorts.
func sortedProfile(name, args string) string {
	return "- schedulerName: " + name +
		"\n  plugins: {queueSort: {disabled: [{name: '*'}], enabled: [{name: Coscheduling}]}}\n" +
		"  pluginConfig:\n  - name: Coscheduling\n    args: " + args + "\n"
}

func findings(t *testing.T, text string) []string {
	t.Helper()
	r := &validate.Report{}
	require.NoError(t, r.Read(strings.NewReader(text), "f.yaml"))
	r.Finish()
	var out []string
	for _, f := range r.Findings {
		out = append(out, f.String())
	}
	return out
}

func TestEachFaultIsFoundWithItsLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		// want is the beginning of each finding, up to where the stock components' own words begin, and its rule.
		want [][2]string
	}{
		{"a profile without faults", profileHead + quietArgs, nil},
		{"a misspelt field at the top", configHead + "profilez: []\n",
			[][2]string{{"f.yaml:6: error: profilez: unknown field; did you mean profiles?", "unknown-field"}}},
		{"a misspelt field in stock args", profileHead + "  pluginConfig:\n  - name: NodeResourcesFit\n    args:\n" +
			"      scoringStrategy:\n        typ: x\n",
			[][2]string{{"f.yaml:12: error: profiles[0].pluginConfig[0].args.scoringStrategy.typ: unknown field; " +
				"did you mean type?", "unknown-field"}}},
		{"a misspelt field in our args", profileHead + "  plugins: {multiPoint: {enabled: [{name: GPUAware, weight: " +
			"20}]}}\n  pluginConfig:\n  - name: GPUAware\n    args:\n      strateggy: Pack\n",
			[][2]string{{"f.yaml:12: error: profiles[0].pluginConfig[0].args.strateggy: unknown field; did you mean " +
				"strategy?", "unknown-field"}}},
		{"an argument of scheduler-plugins", profileHead + "  plugins: {queueSort: {disabled: [{name: '*'}], " +
			"enabled: [{name: Coscheduling}]}, multiPoint: {enabled: [{name: Coscheduling}]}}\n  pluginConfig:\n" +
			"  - name: Coscheduling\n    args:\n      permitWaitingTimeSeconds: 60\n",
			[][2]string{{"f.yaml:12: error: profiles[0].pluginConfig[0].args.permitWaitingTimeSeconds: unknown " +
				"field; Coscheduling has scheduleTimeoutSeconds", "unknown-field"}}},
		{"a value that our args do not take", profileHead + "  plugins: {multiPoint: {enabled: [{name: GPUAware, " +
			"weight: 20}]}}\n  pluginConfig:\n  - name: GPUAware\n    args:\n      strategy: Sideways\n",
			[][2]string{{"f.yaml:12: error: profiles[0].pluginConfig[GPUAware].args.strategy: ", "invalid"}}},
		{"a value of the wrong type", configHead + "parallelism: many\n", [][2]string{{"f.yaml:6: error: ", "type"}}},
		{"a value out of range", strings.Replace(configHead, "Score: 100", "Score: 101", 1),
			[][2]string{{"f.yaml:5: error: percentageOfNodesToScore", "invalid"}}},
		{"an unknown plugin", profileHead + "  plugins: {multiPoint: {enabled: [{name: NodeName},\n" +
			"    {name: NoSuch}]}}\n", [][2]string{{"f.yaml:9: error: ", "start"}}},
		{"a plugin that is almost one of ours", profileHead + "  plugins: {multiPoint: {enabled: [{name: " +
			"GPUaware}]}}\n",
			[][2]string{{"f.yaml:8: error: initializing profiles: creating profile for scheduler name a: ", "start"}}},
		{"args of a plugin that is misspelt", profileHead + quietArgs + "  - name: GPUaware\n" +
			"    args: {strategy: Pack}\n", [][2]string{{`f.yaml:13: error: there is no plugin "GPUaware": nothing ` +
			`reads its args; did you mean GPUAware?`, "plugin"}}},
		{"args of a plugin that was removed", profileHead + quietArgs + "  - name: SelectorSpread\n",
			[][2]string{{`f.yaml:13: error: there is no plugin "SelectorSpread": nothing reads its args`, "plugin"}}},
		{"args of a plugin that the profile does not enable", profileHead + quietArgs +
			"  - name: SLAAware\n    args: {}\n", [][2]string{{"f.yaml:13: warning: profile a: the profile does not " +
			"enable SLAAware: nothing reads its args", "plugin"}}},
		{"args of a stock plugin that is disabled", plugged("multiPoint: {disabled: [{name: InterPodAffinity}]}") +
			"  - name: InterPodAffinity\n    args: {}\n", [][2]string{{"f.yaml:14: warning: profile a: the profile " +
			"does not enable InterPodAffinity: nothing reads its args", "plugin"}}},
		{"queue sorts that differ", profileHead + "  plugins: {queueSort: {disabled: [{name: '*'}], enabled: " +
			"[{name: Coscheduling}]}}\n- schedulerName: b\n",
			[][2]string{{"f.yaml:9: error: profiles[1].plugins.queueSort: every profile needs the same queueSort " +
				"plugin, because they share one queue: b has PrioritySort, a has Coscheduling", "queue-sort"}}},
		{"args of the queue sort that differ", configHead + "profiles:\n" + sortedProfile("a", "{}") +
			sortedProfile("b", "{reservation: {afterSeconds: 30}}") + sortedProfile("c", "{}"),
			[][2]string{{"f.yaml:16: error: profiles[1].pluginConfig[Coscheduling].args: Coscheduling needs the " +
				"same args in every profile, because it sorts the one queue that they share: reservation of profile b " +
				"and of a differ", "queue-sort"}}},
		{"broken YAML", configHead + "profiles: [\n", [][2]string{{"f.yaml:", "syntax"}}},
		{"a key twice", configHead + "parallelism: 1\nparallelism: 2\n", [][2]string{{"f.yaml:7: error: ", "syntax"}}},
		{"nothing at all", "", [][2]string{{"f.yaml: error: there is no document in it", "empty"}}},
		{"only comments", "# nothing\n---\n", [][2]string{{"f.yaml: error: there is no document in it", "empty"}}},
		{"a list for an object", "- a\n", [][2]string{{"f.yaml:1: error: this is not an object", "syntax"}}},
		{"no kind", "a: b\n", [][2]string{{"f.yaml:1: error: apiVersion and kind are required", "kind"}}},

		{"the stock topology defaults", profileHead,
			[][2]string{{"f.yaml:7: warning: profile a: PodTopologySpread's built-in", "batching"}}},
		{"a plugin that signs no pods", plugged("multiPoint: {enabled: [{name: DeferredPodScheduling}]}"),
			[][2]string{{"f.yaml:8: warning: profile a: the batching of identical pods is off: no SignPod in " +
				"DeferredPodScheduling", "batching"}}},
		{"an extender", configHead + "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter}]\n" +
			"profiles:\n- schedulerName: a\n" + quietArgs,
			[][2]string{{"f.yaml:6: warning: an extender", "batching"}}},
		{"the default rate", strings.Replace(configHead, "qps: 2000", "qps: 50", 1) +
			"profiles:\n- schedulerName: a\n" + quietArgs,
			[][2]string{{"f.yaml:4: warning: clientConnection.qps is 50", "qps"}}},
		{"the cluster's own lease", strings.Replace(configHead, "mine", "kube-scheduler", 1) +
			"profiles:\n- schedulerName: a\n" + quietArgs,
			[][2]string{{"f.yaml:3: warning: leaderElection.resourceName", "lease"}}},
		{"spreading against packing", profileHead + "  plugins: {multiPoint: {enabled: [{name: GPUAware, weight: " +
			"5}]}}\n  pluginConfig:\n  - name: PodTopologySpread\n    args: {defaultingType: List}\n",
			[][2]string{{"f.yaml:9: warning: profile a: NodeResourcesFit (weight 1) prefers the emptiest",
				"spreading"}}},
		{"GPUs that are filtered and not reserved", plugged("filter: {enabled: [{name: GPUAware}]}, score: " +
			"{enabled: [{name: GPUAware, weight: 20}]}"),
			[][2]string{{"f.yaml:8: warning: profile a: GPUAware is not enabled in reserve and preBind: " +
				"no device is assigned to a pod that asks for a part of a GPU, and two pods can get the same one", "gpu"}}},
		{"a gang plugin for preemption alone", plugged("postFilter: {enabled: [{name: Coscheduling}]}"),
			[][2]string{{"f.yaml:1: error: profile a: plugin Coscheduling is enabled at postFilter but not at " +
				"queueSort, ", "start"}}},
		{"a negative weight", profileHead + "  plugins:\n    score:\n      enabled:\n      - name: NodeAffinity\n" +
			"        weight: -2\n" + quietArgs,
			[][2]string{{"f.yaml:12: error: profile a: NodeAffinity has the weight -2", "weight"}}},
		{"a weight of nothing", plugged("score: {enabled: [{name: NodeAffinity, weight: 0}]}"),
			[][2]string{{"f.yaml:8: warning: profile a: the weight 0 of NodeAffinity is read as 1", "weight"}}},
		{"a weight where none counts", plugged("filter: {enabled: [{name: NodeAffinity, weight: 5}]}"),
			[][2]string{{"f.yaml:8: warning: profile a: the weight of NodeAffinity at filter counts nothing",
				"weight"}}},
		{"a weight of a plugin that does not score", plugged("multiPoint: {enabled: [{name: NodeName, weight: 5}]}"),
			[][2]string{{"f.yaml:8: warning: profile a: NodeName does not score", "weight"}}},
		{"a stock plugin without its weight", plugged("multiPoint: {enabled: [{name: TaintToleration}]}"),
			[][2]string{{"f.yaml:8: warning: profile a: TaintToleration is enabled without a weight, which is then " +
				"1; stock it has 3", "weight"}}},
		{"GPUs that are priced by other names than they are counted by", plugged(
			"multiPoint: {enabled: [{name: GPUAware, weight: 20}, {name: CostOptimized, weight: 20}]}") +
			"  - name: GPUAware\n    args: {resources: [example.com/gpu]}\n", [][2]string{{
			"f.yaml:9: warning: profile a: CostOptimized prices other GPUs than GPUAware counts", "gpu"}}},
		{"a node whose GPUs are unknown", nodeHead + "status:\n  allocatable: {nvidia.com/gpu: 4}\n",
			[][2]string{{"f.yaml:3: warning: Node nn: the model and the memory of the node's GPUs cannot be told " +
				"from its labels: pods w", "gpu"}}},
		{"a node whose machine is known", nodeHead + "  labels: {node.kubernetes.io/instance-type: g5.12xlarge}\n" +
			"status:\n  allocatable: {nvidia.com/gpu: 4}\n", nil},
		{"cost among a sample of nodes", strings.Replace(configHead, "Score: 100", "Score: 30", 1) + "profiles:\n" +
			"- schedulerName: a\n  plugins: {multiPoint: {enabled: [{name: CostOptimized, weight: 20}]}}\n" +
			quietArgs, [][2]string{{"f.yaml:5: warning: profile a: percentageOfNodesToScore is 30", "sampling"}}},
		{"gangs after preemption and without their order", plugged("multiPoint: {enabled: [{name: Coscheduling}]}, " +
			"queueSort: {disabled: [{name: Coscheduling}]}"),
			[][2]string{{"f.yaml:1: error: profile a: plugin Coscheduling is enabled at preEnqueue, preFilter, " +
				"filter, postFilter, reserve, permit, preBind but not at queueSort", "start"}}},

		{"objectives without figures", plugged("multiPoint: {enabled: [{name: SLAAware, weight: 20}]}"),
			[][2]string{{"f.yaml:9: warning: profile a: SLAAware scores no node without signals", "no-figures"}}},
		{"figures of objectives", plugged("multiPoint: {enabled: [{name: SLAAware, weight: 20}]}") +
			"  - name: SLAAware\n    args: {signals: {prometheus: {url: 'http://p:9090'}, latencyMsQuery: x}}\n", nil},
		{"figures without a query", plugged("multiPoint: {enabled: [{name: SLAAware, weight: 20}]}") +
			"  - name: SLAAware\n    args:\n      signals:\n        prometheus: {url: 'http://p:9090'}\n",
			[][2]string{{"f.yaml:16: error: profiles[0].pluginConfig[SLAAware].args.signals: Required value: want " +
				"latencyMsQuery", "invalid"}}},
		{"signals of GPUs that are wrong", plugged("multiPoint: {enabled: [{name: GPUAware, weight: 20}]}") +
			"  - name: GPUAware\n    args:\n      signals:\n        prometheus: {url: 'p:9090'}\n",
			[][2]string{{"f.yaml:17: error: profiles[0].pluginConfig[GPUAware].args.signals.prometheus.url: Invalid " +
				"value", "invalid"}}},
		{"service levels", plugged("queueSort: {disabled: [{name: '*'}], enabled: [{name: Coscheduling}]}, "+
			"postFilter: {enabled: [{name: Coscheduling}]}, multiPoint: {enabled: [{name: Coscheduling}]}") +
			"  - name: Coscheduling\n    args: {sla: {classes: [{name: a, deadlineSeconds: 60}], ageing: " +
			"{priorityPerHour: 100}}}\n", nil},
		{"a service level that changes nothing", plugged("queueSort: {disabled: [{name: '*'}], enabled: [{name: "+
			"Coscheduling}]}, postFilter: {enabled: [{name: Coscheduling}]}, multiPoint: {enabled: [{name: "+
			"Coscheduling}]}") + "  - name: Coscheduling\n    args:\n      sla:\n        classes:\n" +
			"        - name: b\n", [][2]string{{"f.yaml:18: warning: profile a: class b has neither", "no-effect"}}},

		{"a configuration in a ConfigMap", configMap + "  config.yaml: |\n" +
			"    apiVersion: kubescheduler.config.k8s.io/v1\n    kind: KubeSchedulerConfiguration\n    profilez: []\n",
			[][2]string{{"f.yaml:8: error: profilez: unknown field; did you mean profiles?", "unknown-field"}}},
		{"a configuration in a ConfigMap whose kind is in quotes", configMap + "  config.yaml: |\n" +
			"    apiVersion: kubescheduler.config.k8s.io/v1\n    kind: \"KubeSchedulerConfiguration\"\n" +
			"    profilez: []\n",
			[][2]string{{"f.yaml:8: error: profilez: unknown field; did you mean profiles?", "unknown-field"}}},
		{"a configuration in a ConfigMap with aligned values", configMap + "  config.yaml: |\n" +
			"    apiVersion: kubescheduler.config.k8s.io/v1\n    kind:       KubeSchedulerConfiguration\n" +
			"    profilez:   []\n",
			[][2]string{{"f.yaml:8: error: profilez: unknown field; did you mean profiles?", "unknown-field"}}},
		{"a configuration in a ConfigMap in JSON", configMap + "  config.json: |\n" +
			"    {\"apiVersion\": \"kubescheduler.config.k8s.io/v1\",\n" +
			"    \"kind\":\"KubeSchedulerConfiguration\",\n    \"profilez\": []}\n",
			[][2]string{{"f.yaml:8: error: profilez: unknown field; did you mean profiles?", "unknown-field"}}},
		{"a configuration in a ConfigMap that cannot be parsed", configMap + "  config.yaml: |\n" +
			"    apiVersion: kubescheduler.config.k8s.io/v1\n    kind: 'KubeSchedulerConfiguration'\n" +
			"    profiles: [\n", [][2]string{{"f.yaml:", "syntax"}}},
		{"a ConfigMap that speaks of configurations", configMap + "  about: |\n" +
			"    # A file has kind: KubeSchedulerConfiguration\n    text: \"with kind: KubeSchedulerConfiguration\"\n",
			nil},
		{"a misspelt field in the second document", "apiVersion: v1\nkind: Namespace\nmetadata: {name: nn}\n---\n" +
			"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  contaners: []\n",
			[][2]string{{"f.yaml:9: warning: Pod p: spec.contaners: unknown field in Kubernetes 1.37; did you mean " +
				"containers?", "unknown-field"}}},
		{"a PodGroup with bad values", "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata:\n" +
			"  name: g\n  annotations:\n    berth.dev/topology-preferred: my rack\n    berth.dev/backfill: \"yes\"\n" +
			"spec: {minMember: 2}\n", [][2]string{{`f.yaml:6: error: PodGroup g: ` +
			`metadata.annotations[berth.dev/topology-preferred]: "my rack" is not the key of a`, "value"},
			{`f.yaml:7: error: PodGroup g: metadata.annotations[berth.dev/backfill]: "yes" is not "allow"`, "value"}}},
		{"NetworkTopology that is not told anything", plugged("score: {enabled: [{name: NetworkTopology, weight: " +
			"10}]}"), [][2]string{{"f.yaml:8: warning: profile a: NetworkTopology scores, but", "network"},
			{"f.yaml:8: warning: profile a: NetworkTopology is not enabled in reserve", "network"}}},
		{"a level of a network that is nearer than a narrower one", profileHead + "  plugins: {multiPoint: " +
			"{enabled: [{name: NetworkTopology, weight: 10}]}}\n  pluginConfig:\n  - name: NetworkTopology\n" +
			"    args:\n      sameNodeMicroseconds: 6\n", [][2]string{{"f.yaml:11: error: " +
			"profiles[0].pluginConfig[NetworkTopology].args.levels[0].microseconds: ", "invalid"}}},
		{"a bad value in a pod template", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n" +
			"  template:\n    metadata:\n      annotations:\n        berth.dev/spot: maybe\n" +
			"    spec: {restartPolicy: Never, containers: [{name: c, image: i}]}\n",
			[][2]string{{`f.yaml:8: error: Job j: spec.template.metadata.annotations[berth.dev/spot]: "maybe" is ` +
				`not one of "avoid", "to`, "value"}}},
		{"two service levels", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations:\n" +
			"    berth.dev/sla-class: a\n  labels:\n    berth.dev/sla-class: b\nspec: {containers: [{name: c, " +
			"image: i}]}\n", [][2]string{{`f.yaml:6: error: Pod p: metadata.annotations[berth.dev/sla-class]: "a" ` +
			`is not "b", which the pod's label of th`, "value"}}},
		{"a gang by a controller", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  parallelism: 4\n" +
			"  template:\n    metadata:\n      annotations:\n        berth.dev/gang: \"true\"\n" +
			"    spec: {restartPolicy: Never, containers: [{name: c, image: i}]}\n", nil},
		{"a gang by a controller, said wrongly", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n" +
			"  template:\n    metadata:\n      annotations:\n        berth.dev/gang: \"yes\"\n" +
			"    spec: {restartPolicy: Never, containers: [{name: c, image: i}]}\n",
			[][2]string{{`f.yaml:8: error: Job j: spec.template.metadata.annotations[berth.dev/gang]: "yes" is not ` +
				`"true"`, "value"}}},
		{"a gang by a controller that creates its pods one after the other", "apiVersion: apps/v1\n" +
			"kind: StatefulSet\nmetadata: {name: s}\nspec:\n  selector: {matchLabels: {a: b}}\n  replicas: 4\n" +
			"  template:\n    metadata:\n      labels: {a: b}\n      annotations:\n" +
			"        berth.dev/gang: \"true\"\n    spec: {containers: [{name: c, image: i}]}\n",
			[][2]string{{"f.yaml:11: error: StatefulSet s: creates its pods one after the other " +
				"(podManagementPolicy: OrderedReady): a g", "gang"}}},
		{"a pod that asks to be a gang", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n" +
			"  annotations: {berth.dev/gang: \"true\"}\nspec: {containers: [{name: c, image: i}]}\n",
			[][2]string{{"f.yaml:3: error: Pod p: pod annotation berth.dev/gang: the pod belongs to no controller; " +
				"create a PodGroup for", "value"}}},
		{"a bad price of a node", nodeHead + "  annotations: {berth.dev/price-per-hour: $3}\n",
			[][2]string{{`f.yaml:5: error: Node nn: metadata.annotations[berth.dev/price-per-hour]: "$3" is not a ` +
				`decimal number of doll`, "value"}}},
		{"a node that shares its GPUs with nothing to enforce it", nodeHead + "  labels:\n" +
			"    berth.dev/gpu-mode: shared\n", [][2]string{{"f.yaml:6: warning: Node nn: label berth.dev/gpu-mode: " +
			"shared, but no agent enforces shares here (no hami.io/no", "unenforced-shares"}}},
		{"one with an agent", "apiVersion: v1\nkind: Node\nmetadata: {name: nn, labels: {berth.dev/gpu-mode: " +
			"shared, berth.dev/gpu-agent: ours}}\n", nil},
		{"one that HAMi registered", nodeHead + "  labels: {berth.dev/gpu-mode: shared, nvidia.com/gpu.product: " +
			"Tesla-T4}\n  annotations: {hami.io/node-nvidia-register: \"GPU-a,10,16384,100,NVIDIA-T4,0,true:\"}\n",
			nil},
		{"one in the short form", "shapes:\n- name: a\n  labels:\n    berth.dev/gpu-mode: shared\n",
			[][2]string{{"f.yaml:4: warning: label berth.dev/gpu-mode: shared", "unenforced-shares"}}},
		{"a policy that all is well with", policyHead + "spec: {licenses: [{name: matlab, count: 2}]}\n", nil},
		{"a policy with an expression that does not compile", policyHead + "spec:\n  compliance:\n    rules:\n" +
			"    - name: eu\n      nodes:\n        expression: node.lables.size() > 0\n",
			[][2]string{{`f.yaml:9: error: PlacementPolicy pp: spec.compliance.rules[0].nodes.expression: Invalid ` +
				`value: "node.lables.si`, "policy"}}},
		{"a policy with an expression that fails for some pods", policyHead + "spec:\n  licenses:\n" +
			"  - name: matlab\n    count: 1\n    pods: {expression: pod.labels.app == 'matlab'}\n",
			[][2]string{{`f.yaml:8: error: PlacementPolicy pp: spec.licenses[0].pods.expression: Invalid value: ` +
				`"pod.labels.app == 'ma`, "policy"}}},
		{"a misspelt field of a policy", policyHead + "spec:\n  licences: []\n",
			[][2]string{{"f.yaml:5: error: PlacementPolicy pp: spec.licences: unknown field; did you mean licenses?",
				"unknown-field"}}},
		{"a policy without rules", policyHead + "spec: {}\n", [][2]string{{"f.yaml:4: error: PlacementPolicy pp: " +
			"spec: a policy needs licenses, datasets or compliance", "policy"}}},
		{"placement policies in a profile", plugged("multiPoint: {enabled: [{name: PlacementPolicy, weight: 20}]}"),
			nil},
		{"a profile that placement policies do not reach", plugged("multiPoint: {enabled: [{name: PlacementPolicy, "+
			"weight: 20}]}") + "- schedulerName: b\n  plugins: {}\n" + quietArgs, [][2]string{{
			"f.yaml:15: warning: profile b: PlacementPolicy is not enabled as in other profiles", "policies"}}},
		{"a pool that all is well with", "apiVersion: berth.dev/v1alpha1\nkind: IPPool\nmetadata: {name: pp}\n" +
			"spec: {subnets: [{ranges: [10.0.0.0/24]}]}\n", nil},
		{"a pool with an address twice", "apiVersion: berth.dev/v1alpha1\nkind: IPPool\nmetadata: {name: pp}\n" +
			"spec:\n  subnets:\n  - ranges: [10.0.0.1]\n  - ranges: [10.0.0.0/29]\n",
			[][2]string{{`f.yaml:7: error: IPPool pp: spec.subnets[1].ranges[0]: Invalid value: "10.0.0.0/29": has ` +
				`addresses in common wi`, "address"}}},
		{"a reservation under a wrong name", "apiVersion: berth.dev/v1alpha1\nkind: IPReservation\n" +
			"metadata: {name: db}\nspec: {address: 10.0.0.1, pod: {namespace: default, name: p}}\n",
			[][2]string{{"f.yaml:3: error: IPReservation db: metadata.name: a reservation of 10.0.0.1 must be named " +
				"ip-10-0-0-1, not db", "address"}}},
		{"a reservation of no address", "apiVersion: berth.dev/v1alpha1\nkind: IPReservation\nmetadata: {name: ip}\n" +
			"spec: {address: 10.0.0, pod: {namespace: default, name: p}}\n",
			[][2]string{{`f.yaml:4: error: IPReservation ip: spec.address: reading address "10.0.0": want a CIDR ` +
				`(10.0.0.0/24), an addre`, "address"}}},
		{"an unknown kind", "apiVersion: example.com/v1\nkind: Thing\n",
			[][2]string{{"f.yaml:2: note: Thing: not checked: the fields of this kind in example.com/v1 are not " +
				"known here", "not-checked"}}},
		{"a kind that its group does not have", "apiVersion: v1\nkind: Thing\n",
			[][2]string{{"f.yaml:2: warning: Thing: kind: there is no kind Thing of v1 in Kubernetes 1.37", "kind"}}},
		{"a misspelt field of a short form of nodes", "shapes:\n- name: a\n  cuont: 3\n",
			[][2]string{{"f.yaml:3: error: shapes[0].cuont: unknown field; did you mean count?", "unknown-field"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := findings(t, tt.text)
			ok := len(got) == len(tt.want)
			for i := range min(len(got), len(tt.want)) {
				ok = ok && strings.HasPrefix(got[i], tt.want[i][0]) && strings.HasSuffix(got[i], "("+tt.want[i][1]+")")
			}
			if !ok {
				t.Errorf("got findings\n%s\nwant\n%v", strings.Join(got, "\n"), tt.want)
			}
		})
	}
}

// Values of annotations are read by those who act on them.
func TestAnnotationsOfPodsAreReadAsTheSchedulerDoes(t *testing.T) {
	t.Parallel()
	const unknown, value = "unknown key; did you mean ", `" is not `
	for annotation, want := range map[string]string{
		"gpu-modles: T4":             unknown + "berth.dev/gpu-models? (unknown-key)",
		"gpu-memory: 40Gi":           unknown + "berth.dev/gpu-memory-min? (unknown-key)",
		"gpu-model: x":               unknown + "berth.dev/gpu-models? (unknown-key)",
		`backfill: "true"`:           `"true` + value + `"allow" (value)`,
		"topology-required: my rack": `"my rack` + value + "the key of a node ",
		"slo-latency-ms: 250ms":      `"250ms` + value + "a decimal number above ",
		"licenses: matlab=0":         `"matlab=0` + value + "a list of at most 16 licen",
		"datasets: a,a":              `"a,a` + value + "a list of at most 16 datasets, ",
		"ip-pool: a b":               `"a b` + value + "the name of an IPPool, such as r",
		`start-window: ""`:           `"` + value + "the name of a window of the scheduler (value)",
		`sla-class: ""`:              `"` + value + "the name of a class of the scheduler (value)",
	} {
		key, _, _ := strings.Cut(annotation, ":")
		text := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations:\n    berth.dev/" + annotation +
			"\nspec: {containers: [{name: c, image: i}]}\n"
		sameBeginnings(t, findings(t, text),
			[]string{"f.yaml:6: error: Pod p: metadata.annotations[berth.dev/" + key + "]: " + want})
	}
}

func TestWeightsThatNothingWouldFeelAreFound(t *testing.T) {
	t.Parallel()
	for _, plugin := range []string{"GPUAware", "NetworkTopology", "PlacementPolicy", "SLAAware"} {
		text := plugged("multiPoint: {enabled: [{name: " + plugin + "}]}")
		if plugin == "SLAAware" {
			text += "  - name: SLAAware\n    args: {signals: {prometheus: {url: 'http://p:9090'}, latencyMsQuery: x}}\n"
		}
		got := findings(t, text)
		if len(got) != 1 || !strings.HasPrefix(got[0], "f.yaml:8: warning: profile a: "+plugin+" has weight 1") ||
			!strings.HasSuffix(got[0], "(low-weight)") {
			t.Errorf("%s: found %q", plugin, got)
		}
	}
}
