package tool_test

import (
	"strings"
	"testing"
)

// A level of a gang that no node has as a label keeps the gang waiting, and is found before that where nodes are known.
func TestLevelsThatNoNodeHas(t *testing.T) {
	t.Parallel()
	const (
		node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {topology.kubernetes.io/rack: r}}\n" +
			"status: {allocatable: {cpu: 8}}\n---\n"
		shape = "shapes:\n- name: a\n  count: 1\n  labels: {site/rack: r}\n  allocatable: {cpu: 1}\n---\n"
		rack  = "no node in the files has the label topology.kubernetes.io/rak; did you mean topology.kubernetes.io/rack? " +
			"(no-level)"
		note = "not checked: the fields of this kind"
	)
	object := func(apiVersion, kind, annotations, rest string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata:\n  name: g\n  annotations: {" + annotations +
			"}\n" + rest
	}
	group := func(annotations string) string {
		return object("scheduling.x-k8s.io/v1alpha1", "PodGroup", annotations, "spec: {minMember: 2}\n")
	}
	pod := func(annotations, labels string) string {
		return object("v1", "Pod", annotations, "  labels: {"+labels+"}\nspec: {schedulerName: gang-scheduler, "+
			"containers: [{name: c, image: i}]}\n")
	}
	const (
		required = "berth.dev/topology-required: "
		misspelt = required + "topology.kubernetes.io/rak"
	)
	for _, tt := range []fileCase{
		{name: "a level that nodes have", text: node + group(required+"topology.kubernetes.io/rack")},
		{name: "a level over which a shape is spread", text: strings.Replace(shape, "  allocatable",
			"  spread: {hall: [h1, h2]}\n  allocatable", 1) + group(required+"hall")},
		{name: "a level where no node is known", text: group(misspelt)},
		{name: "each node is a domain of its own", text: shape + group(required+"kubernetes.io/hostname")},
		{name: "a level of a PodGroup", text: node + group(misspelt),
			want: []string{"f.yaml:10: warning: PodGroup g: " + rack}},
		{name: "a level of a pod", text: node + pod(misspelt, ""), want: []string{"f.yaml:10: warning: Pod g: " + rack}},
		{name: "two that are preferred, and a segment's", text: shape + group("berth.dev/topology-preferred: "+
			"\"a/zone,b/hall\", berth.dev/segment-size: \"2\", berth.dev/segment-topology: rack"), want: []string{
			"f.yaml:11: warning: PodGroup g: no node in the files has the label rack; did you mean site/rack? (no-level)",
			"f.yaml:11: warning: PodGroup g: no node in the files has the label a/zone (no-level)",
			"f.yaml:11: warning: PodGroup g: no node in the files has the label b/hall (no-level)"}},
		{name: "of groups within", text: node + group("berth.dev/groups: '[{name: a, copies: 2, pods: 1, "+
			"groups: [{name: b, pods: 1, required: topology.kubernetes.io/rak}]}]'"),
			want: []string{"f.yaml:10: warning: PodGroup g: " + rack}},
		{name: "of Volcano", text: node + object("scheduling.volcano.sh/v1beta1", "PodGroup", "", "spec: {"+
			"minMember: 2, networkTopology: {mode: hard, highestTierName: topology.kubernetes.io/rak}}\n---\n") +
			pod("scheduling.k8s.io/group-name: g", ""),
			want: []string{"f.yaml:7: note: PodGroup g: " + note, "f.yaml:11: warning: PodGroup g: " + rack}},
		{name: "of a sub-group of KAI", text: node + object("scheduling.run.ai/v2alpha2", "PodGroup", "", "spec: {"+
			"subGroups: [{name: a, minMember: 1}, {name: b, minMember: 1, topologyConstraint: {topology: t, "+
			"requiredTopologyLevel: topology.kubernetes.io/rak}}]}\n---\n") +
			pod("pod-group-name: g", "kai.scheduler/subgroup-name: a"),
			want: []string{"f.yaml:7: note: PodGroup g: " + note, "f.yaml:11: warning: PodGroup g: " + rack}},
		{name: "of Grove", text: node + object("scheduler.grove.io/v1alpha1", "PodGang", "", "spec: {podgroups: "+
			"[{name: a, minReplicas: 1}], topologyConstraint: {packConstraint: {preferred: "+
			"topology.kubernetes.io/rak}}}\n---\n") +
			pod("", "grove.io/podgang: g, grove.io/podclique: a"),
			want: []string{"f.yaml:7: note: PodGang g: " + note, "f.yaml:11: warning: PodGang g: " + rack}},
		{name: "of a native group", text: node + object("scheduling.k8s.io/v1beta1", "PodGroup", "", "spec: {"+
			"schedulingPolicy: {gang: {minCount: 1}}, schedulingConstraints: {topology: [{key: "+
			"topology.kubernetes.io/rak}]}}\n---\n") +
			object("v1", "Pod", "", "spec: {schedulerName: gang-scheduler, schedulingGroup: {podGroupName: g}, "+
				"containers: [{name: c, image: i}]}\n"), want: []string{"f.yaml:11: warning: PodGroup g: " + rack}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sameBeginnings(t, findings(t, tt.text), tt.want)
		})
	}
}
