package tool_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nativePod is a pod of nativeGroup, which is part of a tree.
const (
	nativePod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {schedulerName: gang-scheduler, " +
		"schedulingGroup: {podGroupName: a}, containers: [{name: c, image: i}]}\n"
	nativeGroup = "---\napiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: a}\n" +
		"spec: {schedulingPolicy: {gang: {minCount: 1}}, parentCompositePodGroupName: job, " +
		"workloadRef: {workloadName: w, templateName: t}}\n"
)

func TestAnnotationsThatNoProfileReads(t *testing.T) {
	t.Parallel()
	const (
		with = "- schedulerName: with\n  plugins: {multiPoint: {enabled: [{name: IPReservation}, {name: " +
			"CostOptimized, weight: 20}, {name: PlacementPolicy, weight: 20}]}}\n" + quietArgs
		without = "- schedulerName: without\n  plugins: {multiPoint: {enabled: [{name: PlacementPolicy, weight: 20}]}}\n" +
			quietArgs
		// Nothing writes what is promised.
		half = "- schedulerName: half\n  plugins: {multiPoint: {enabled: [{name: IPReservation}, {name: " +
			"PlacementPolicy, weight: 20}]}, preBind: {disabled: [{name: IPReservation}]}}\n" + quietArgs
		profile = configHead + "profiles:\n"
	)
	pod := func(scheduler string, annotations ...string) string {
		return "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations:\n    " +
			strings.Join(annotations, "\n    ") +
			"\nspec:\n  schedulerName: " + scheduler + "\n  containers: [{name: c, image: i}]\n"
	}
	const template = `---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: s}
spec:
  serviceName: s
  selector: {matchLabels: {a: b}}
  template:
    metadata:
      labels: {a: b}
      annotations:
        berth.dev/ip-pool: racks
    spec: {schedulerName: without, containers: [{name: c, image: i}]}
`
	group := "---\napiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata:\n  name: g\n  annotations:\n" +
		"    berth.dev/spot: tolerate\n    berth.dev/ip-pool: racks\nspec: {minMember: 2}\n"
	const pool, spot = "berth.dev/ip-pool: racks", "berth.dev/spot: tolerate"
	const deployment = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n" +
		"  {name: d, annotations: {scheduling.volcano.sh/group-min-member: \"2\"}}\n" +
		"spec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, " +
		"spec: {schedulerName: gang-scheduler, containers: [{name: c, image: i}]}}}\n"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"a group of Koordinator": {text: profile + with + pod("with", "gang.scheduling.koordinator.sh/name: g"),
			want: []string{"f.yaml:20: warning: Pod p: annotation gang.scheduling.koordinator.sh/name names a group of " +
				"Koordinator, which is not read"}},
		"a group of YuniKorn and a shipped profile": {text: pod("gang-scheduler", "yunikorn.apache.org/task-group-name: g"),
			want: []string{"annotation yunikorn.apache.org/task-group-name names a group of YuniKorn, which is not read"}},
		"a group of Koordinator for Koordinator": {text: profile + with +
			pod("koordinator", "gang.scheduling.koordinator.sh/name: g")},
		"a group of Volcano": {text: pod("gang-scheduler", "scheduling.k8s.io/group-name: g") +
			"---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\n" +
			"spec: {minMember: 2, queue: q}\n",
			want: []string{"not checked: the fields of this kind",
				"f.yaml:15: warning: PodGroup g: not followed: queue q: Berth has no queues, Kueue has"}},
		"a group of Volcano that is missing": {text: pod("gang-scheduler", "scheduling.k8s.io/group-name: g"),
			want: []string{"there is no Volcano PodGroup g in the files"}},
		"a tree of native groups without one of them": {text: nativePod + nativeGroup,
			want: []string{"there is no CompositePodGroup job in the files: without one in the cluster the pods wait"}},
		"a tree of native groups with a priority": {text: nativePod + nativeGroup +
			"---\napiVersion: scheduling.k8s.io/v1alpha3\nkind: CompositePodGroup\nmetadata: {name: job}\n" +
			"spec: {schedulingPolicy: {gang: {minGroupCount: 1}}, priorityClassName: high, " +
			"workloadRef: {workloadName: w, templateName: t}}\n",
			want: []string{"CompositePodGroup job: not followed: priorityClassName high: the priority of the pods counts"}},
		"a minimum of Volcano on a Deployment alone": {text: deployment,
			want: []string{"f.yaml:5: warning: Deployment d: annotation scheduling.volcano.sh/group-min-member alone makes no " +
				"gang of the pods: put it on the pod template"}},
		"one of KAI on the Jobs of a CronJob": {text: "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c}\nspec:\n" +
			"  schedule: '@daily'\n  jobTemplate:\n    metadata: {annotations: {kai.scheduler/batch-min-member: '4'}}\n" +
			"    spec: {parallelism: 6, template: {spec: {restartPolicy: Never, schedulerName: gang-scheduler, containers: " +
			"[{name: c, image: i}]}}}\n",
			want: []string{"f.yaml:7: warning: CronJob c: annotation kai.scheduler/batch-min-member alone makes no gang of the " +
				"pods: put it on the pod template"}},
		"one for the scheduler of the cluster, which is Berth's": {text: profile + "- schedulerName: default-scheduler\n" +
			quietArgs + strings.Replace(deployment, "schedulerName: gang-scheduler, ", "", 1),
			want: []string{"Deployment d: annotation scheduling.volcano.sh/group-min-member alone makes no gang of the pods"}},
		"one beside the annotation of a gang": {
			text: strings.Replace(deployment, "{a: b}}, spec", "{a: b}, annotations: {berth.dev/gang: \"true\"}}, spec", 1)},
		"one for Volcano":                {text: strings.Replace(deployment, "gang-scheduler", "volcano", 1)},
		"a group of Volcano for Volcano": {text: pod("volcano", "scheduling.k8s.io/group-name: g")},
		"a group of KAI that cannot be read": {
			text: "---\napiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: all}\n",
			want: []string{"not checked: the fields of this kind",
				"f.yaml:5: error: PodGroup g: spec.minMember: \"all\" is not a whole number"}},
		"a group of KAI that KAI would not evict": {text: strings.Replace(pod("gang-scheduler", "pod-group-name: g"),
			"spec:\n", "spec:\n  priorityClassName: inference\n", 1) +
			"---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: inference}\nvalue: 125\n" +
			"---\napiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: 1}\n",
			want: []string{"not checked: the fields of this kind",
				"PodGroup g: not followed: priority 125, at which KAI evicts no group: pods of a higher priority may evict it"}},
		"a profile with the plugins": {text: profile + with + pod("with", pool, spot)},
		"no configuration":           {text: pod("without", pool, spot)},
		"annotations of nobody's":    {text: profile + without + pod("without", "some: value")},
		"a profile without the plugins": {text: profile + without + pod("without", pool, spot),
			want: []string{"annotation berth.dev/ip-pool has no effect, because IPReservation is not enabled: the pod gets no " +
				"address of the pool", "annotation berth.dev/spot has no effect, because CostOptimized is not enabled: the pod " +
				"may run on spot capacity and elsewhere alike"}},
		"a profile with half of it": {text: profile + half + pod("half", pool),
			want: []string{"profile half: plugin IPReservation is enabled at preFilter, filter, reserve but not at preBind"}},
		"another profile with it": {text: profile + with + without + pod("without", pool),
			want: []string{"profile without: annotation berth.dev/ip-pool"}},
		"the manifest first": {text: pod("without", pool) + "---\n" + profile + without,
			want: []string{"f.yaml:7: warning: Pod p: profile without: annotation berth.dev/ip-pool"}},
		"a scheduler of another name": {text: profile + with + pod("elsewhere", pool),
			want: []string{"the pod's scheduler elsewhere is not among the profiles that were checked (with); where " +
				"IPReservation is not enabled, the pod gets no address"}},
		"no scheduler": {text: profile + with + pod(`""`, spot), want: []string{"the pod's scheduler default-scheduler is not among"}},
		"the template of a StatefulSet": {text: profile + without + template,
			want: []string{"profile without: annotation berth.dev/ip-pool"}},
		"licenses and data": {text: profile + "- schedulerName: none\n  plugins: {}\n" + quietArgs +
			pod("none", "berth.dev/licenses: matlab", "berth.dev/datasets: imagenet"),
			want: []string{"no license is counted for the pod", "the pod is not placed near its data"}},
		"a PodGroup, whatever the rest": {text: profile + with + group,
			want: []string{"annotation berth.dev/spot has no effect here: set it on the pods",
				"annotation berth.dev/ip-pool has no effect here: set it on the pods"}},
		"a PodGroup and no profile": {text: group,
			want: []string{"f.yaml:7: warning: PodGroup g: annotation berth.dev/spot",
				"f.yaml:8: warning: PodGroup g: annotation berth.dev/ip-pool"}},
		"a value that cannot be read": {text: profile + with + pod("with", "berth.dev/ip-pool: A B"),
			want: []string{"is not the name of an IPPool"}},
		"the same pod in two namespaces": {text: profile + without + pod("without", spot) + pod("without", spot),
			want: []string{"spot", "spot"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Profiles that differ are warned of for reasons of their own.
			var got []string
			for _, f := range findings(t, test.text) {
				if !strings.HasSuffix(f, "(policies)") {
					got = append(got, f)
				}
			}
			if len(got) != len(test.want) {
				t.Fatalf("findings (-want +got):\n%s", cmp.Diff(test.want, got))
			}
			for i, want := range test.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("finding %d is\n%s\nwant in it\n%s", i, got[i], want)
				}
			}
		})
	}
}
