package tool_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/validate"
	"berth.dev/berth/test/harness/require"
)

func TestWhatTheFilesSayAboutEachOther(t *testing.T) {
	t.Parallel()
	node := func(name, product, resource string) string {
		return "apiVersion: v1\nkind: Node\nmetadata:\n  name: " + name + "\n  labels: {nvidia.com/gpu.product: " + product +
			"}\nstatus:\n  allocatable: {cpu: 8, " + resource + ": 8}\n---\n"
	}
	pod := func(meta, resource string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n" + meta +
			"spec:\n  containers:\n  - name: c\n    image: i\n    resources:\n      limits:\n        cpu: 1\n        " +
			resource + ": 1\n"
	}
	const (
		group = "---\napiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: train}\n" +
			"spec: {minMember: 1}\n"
		member  = "  labels: {scheduling.x-k8s.io/pod-group: train}\n"
		models  = "  annotations: {berth.dev/gpu-models: Tesla-T4|L4}\n"
		workers = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, namespace: nn}\nspec:\n  template:\n    metadata:\n" +
			"      labels:\n        scheduling.x-k8s.io/pod-group: train\n" +
			"    spec: {restartPolicy: Never, containers: [{name: c, image: i}]}\n"
	)
	const nv = "nvidia.com/gpu"
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{name: "a gang and its group", text: pod(member, nv) + group},
		{name: "a gang without a group", text: pod(member, nv), want: []string{
			`f.yaml:5: warning: Pod p: label scheduling.x-k8s.io/pod-group: there is no PodGroup train in the files: without one in the cluster the pods wait (no-group)`}},
		{name: "a gang whose group is spelt otherwise", text: pod("  labels: {scheduling.x-k8s.io/pod-group: trian}\n", nv) +
			group, want: []string{
			`f.yaml:5: warning: Pod p: label scheduling.x-k8s.io/pod-group: there is no PodGroup trian in the files; did you mean train? (no-group)`}},
		{name: "a gang whose group is in another namespace", text: workers + group, want: []string{
			`f.yaml:8: warning: Job nn/j: label scheduling.x-k8s.io/pod-group: the PodGroup train is in the namespace default, not in nn: pods and their group must be in one (no-group)`}},

		{name: "a profile whose name is misspelt", text: strings.Replace(pod("", nv), "spec:\n",
			"spec:\n  schedulerName: berth-schedular\n", 1), want: []string{
			`f.yaml:6: warning: Pod p: spec.schedulerName: no scheduler is known here by the name berth-schedular; did you mean berth-scheduler? (no-profile)`}},
		{name: "the name of another scheduler", text: strings.Replace(pod("", nv), "spec:\n",
			"spec:\n  schedulerName: volcano\n", 1)},
		{name: "the name of a shipped profile", text: strings.Replace(pod("", nv), "spec:\n",
			"spec:\n  schedulerName: gang-scheduler\n", 1)},
		{name: "a deadline without a window", text: pod("  annotations: {berth.dev/deadline: \"2026-11-21T06:00:00Z\"}\n",
			nv), want: []string{
			`f.yaml:5: warning: Pod p: annotation berth.dev/deadline has no effect without berth.dev/run-time or berth.dev/start-window, unless a price window of the profile selects the pod by its labels (no-effect)`}},
		{name: "a model that a node has", text: node("n1", "Tesla-T4", nv) + pod(models, nv)},
		{name: "a model that no node has", text: node("n1", "NVIDIA-H100-80GB-HBM3", nv) + node("m", "NVIDIA-A100-SXM4-80GB",
			nv) + pod(models, nv), want: []string{
			`f.yaml:21: warning: Pod p: no node in the files has a GPU of the model L4 or Tesla-T4; the nodes have NVIDIA-A100-SXM4-80GB, NVIDIA-H100-80GB-HBM3 (no-model)`}},
		{name: "a model where no node is known", text: pod(models, nv)},
		{name: "a model that nodes in the short form have", text: "shapes:\n- name: a\n  count: 1\n  labels: " +
			"{nvidia.com/gpu.product: Tesla-T4}\n  allocatable: {nvidia.com/gpu: 1, cpu: 1}\n---\n" + pod(models, nv)},

		{name: "a resource that is misspelt", text: pod("", "nvidia.com/gpus"), want: []string{
			`f.yaml:12: warning: Pod p: unknown resource nvidia.com/gpus; did you mean nvidia.com/gpu? (resource)`}},
		{name: "a resource with a GPU's domain that is none of a GPU", text: pod("", "nvidia.com/hostdev")},
		{name: "a slice of a GPU", text: pod("", "nvidia.com/mig-1g.10gb")},
		{name: "a resource that no node offers", text: node("n1", "Tesla-T4", nv) + pod("", "example.com/fpga"),
			want: []string{
				`f.yaml:20: warning: Pod p: no node in the files offers the resource example.com/fpga; extended resources that they offer: nvidia.com/gpu (resource)`}},
		{name: "GPUs of another maker than the nodes have", text: node("n1", "Tesla-T4", nv) + pod("", "amd.com/gpu"),
			want: []string{
				`f.yaml:20: warning: Pod p: no node in the files offers the resource amd.com/gpu`}},

		{name: "a label that is read with a unit", text: "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  labels:\n" +
			"    nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB\n    nvidia.com/gpu.memory: 80GB\n" +
			"status: {allocatable: {nvidia.com/gpu: 8}}\n", want: []string{
			`f.yaml:7: warning: Node n1: label nvidia.com/gpu.memory: "80GB" is read as 81920 MiB; write 81920, which every reader of the label understands (gpu)`}},
		{name: "a label that cannot be read", text: "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  labels:\n" +
			"    nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB\n    nvidia.com/gpu.memory: 80TB\n" +
			"status: {allocatable: {nvidia.com/gpu: 8}}\n", want: []string{
			`f.yaml:7: error: Node n1: metadata.labels[nvidia.com/gpu.memory]: "80TB" is not the memory of one GPU`}},
		{name: "labels of GPUs that the node does not offer",
			text: "shapes:\n- name: a\n  count: 1\n  labels:\n    nvidia.com/gpu.memory: 80GB\n  allocatable: {cpu: 1}\n",
			want: []string{
				`f.yaml:5: warning: label nvidia.com/gpu.memory has no effect: the node has no GPUs, neither nvidia.com/gpu among its allocatable resources nor a label with their number (gpu)`}},
		{name: "a label that is misspelt", text: "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  labels:\n" +
			"    nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB\n    nvidia.com/gpu-memory: \"81920\"\n" +
			"status: {allocatable: {nvidia.com/gpu: 8}}\n", want: []string{
			`f.yaml:7: warning: Node n1: label nvidia.com/gpu-memory is not read; did you mean nvidia.com/gpu.memory? (gpu)`}},
		{name: "labels of feature discovery that Berth has no use for", text: "apiVersion: v1\nkind: Node\nmetadata:\n  " +
			"name: n1\n  labels: {nvidia.com/gpu.present: \"true\", nvidia.com/gpu.mode: compute, nvidia.com/gpu.machine: x, " +
			"nvidia.com/gpu.product: Tesla-T4, nvidia.com/mig.capable: \"false\", nvidia.com/gpu.deploy.driver: \"true\"}\n" +
			"status: {allocatable: {nvidia.com/gpu: 8}}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sameBeginnings(t, findings(t, tt.text), tt.want)
		})
	}
}

func TestObjectsOfAClusterCountAsThoseOfTheFiles(t *testing.T) {
	t.Parallel()
	const pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels: {scheduling.x-k8s.io/pod-group: %s}\n" +
		"  annotations:\n    berth.dev/gpu-models: %s\nspec:\n" +
		"  containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]\n"
	nodes := []v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n",
		Labels: map[string]string{"nvidia.com/gpu.product": "Tesla-T4"}},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")}}}}
	groups := []types.NamespacedName{{Namespace: "default", Name: "train"}}
	for name, tt := range map[string]struct {
		group, models string
		want          []string
	}{
		"what the cluster has": {"train", "Tesla-T4", nil},
		"a group that it has not": {"other-one", "Tesla-T4", []string{"f.yaml:5: warning: Pod p: label " +
			"scheduling.x-k8s.io/pod-group: there is no PodGroup other-one in the files or in the cluster: without one the " +
			"pods wait (no-group)"}},
		"a group that is misspelt": {"trian", "Tesla-T4", []string{"f.yaml:5: warning: Pod p: label " +
			"scheduling.x-k8s.io/pod-group: there is no PodGroup trian in the files or in the cluster; did you mean train? " +
			"(no-group)"}},
		"a model that it has not": {"train", "L4", []string{"f.yaml:7: warning: Pod p: no node in the files or in the " +
			"cluster has a GPU of the model L4; the nodes have Tesla-T4 (no-model)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &validate.Report{}
			require.NoError(t, r.Read(strings.NewReader(fmt.Sprintf(pod, tt.group, tt.models)), "f.yaml"))
			r.AddCluster(nodes, groups)
			r.Finish()
			var got []string
			for _, f := range r.Findings {
				got = append(got, f.String())
			}
			sameBeginnings(t, got, tt.want)
		})
	}
}
