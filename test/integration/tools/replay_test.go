package tools_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/gpu/gpuview/express"
	"berth.dev/berth/pkg/lab/trace"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// replayed is the namespace of the pods of a trace.
const replayed = "replay"

// replayedNodes differ in size and price, so that no two are the same to any plugin.
const replayedNodes = `shapes:
- {name: t4-a, count: 1, labels: {nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.count: "2", berth.dev/gpu-mode: shared, berth.dev/gpu-agent: simulation}, annotations: {berth.dev/price-per-hour: "1.20"}, allocatable: {cpu: "16", memory: 64Gi, nvidia.com/gpu: "2"}}
- {name: t4-b, count: 1, labels: {nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.count: "4", berth.dev/gpu-mode: shared, berth.dev/gpu-agent: simulation}, annotations: {berth.dev/price-per-hour: "2.30"}, allocatable: {cpu: "24", memory: 90Gi, nvidia.com/gpu: "4"}}
- {name: t4-spot, count: 1, labels: {nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.count: "3", berth.dev/gpu-mode: shared, berth.dev/gpu-agent: simulation, karpenter.sh/capacity-type: spot}, annotations: {berth.dev/price-per-hour: "0.70"}, allocatable: {cpu: "20", memory: 80Gi, nvidia.com/gpu: "3"}}
- {name: a100-a, count: 1, labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.count: "8", berth.dev/gpu-mode: shared, berth.dev/gpu-agent: simulation}, annotations: {berth.dev/price-per-hour: "27.45"}, allocatable: {cpu: "96", memory: 1000Gi, nvidia.com/gpu: "8"}}
- {name: a100-b, count: 1, labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.count: "8", berth.dev/gpu-mode: shared, berth.dev/gpu-agent: simulation}, annotations: {berth.dev/price-per-hour: "29.10"}, allocatable: {cpu: "112", memory: 1200Gi, nvidia.com/gpu: "8"}}
- {name: plain-a, count: 1, annotations: {berth.dev/price-per-hour: "0.40"}, allocatable: {cpu: "16", memory: 64Gi}}
- {name: plain-spot, count: 1, labels: {karpenter.sh/capacity-type: spot}, annotations: {berth.dev/price-per-hour: "0.31"}, allocatable: {cpu: "34", memory: 128Gi}}
`

// replayedJobs ask in turn for all that a trace can ask for. They come far enough apart for each to be settled before
// the next.
const replayedJobs = `name,arrival,cpu_milli,memory_mib,gpus,gpu_milli,models,spot,pods,gang
share-1,0s,2000,4000,1,300,,,1,false
whole-1,10s,3000,6000,1,1000,,,1,false
share-2,20s,1000,2000,1,600,,,1,false
cpu-1,30s,6000,12000,0,,,,1,false
model,40s,4000,8000,1,1000,NVIDIA-A100-SXM4-80GB,,1,false
spot,50s,3000,6000,0,,,tolerate,1,false
gang,60s,8000,16000,3,1000,,,4,true
two,70s,5000,10000,2,1000,,,1,false
too-large,80s,1000,2000,9,1000,,,1,false
share-3,90s,1000,2000,1,200,,,1,false
cpu-2,100s,9000,18000,0,,,,1,false
whole-2,110s,2000,4000,1,1000,,,1,false
`

// placesAsTheReplay creates the same pods one after the other in a replay and on the cluster, and compares the nodes.
func placesAsTheReplay(t *testing.T, cluster *box.Box, profile string) {
	var result struct {
		PodsPlaced, PodsPending int
		Placements              map[string]string
	}
	out := mustBerth(t, "replay", "--nodes="+write(t, "nodes.yaml", replayedNodes), "--jobs="+
		write(t, "jobs.csv", replayedJobs), "--profile="+profile, "--output=json")
	require.NoError(t, json.Unmarshal([]byte(out), &result))
	if result.PodsPlaced != 14 || result.PodsPending != 1 {
		t.Errorf("the replay placed %d pods and left %d pending, want all but the one that is too large", result.PodsPlaced,
			result.PodsPending)
	}
	jobs, err := trace.ReadJobs(strings.NewReader(replayedJobs), "jobs.csv")
	require.NoError(t, err)
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: replayed}}
	if _, err := cluster.Client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	bound := map[string]string{}
	for i := range jobs {
		settle(t, cluster, &jobs[i], profile, result.Placements, bound)
	}
	if diff := cmp.Diff(bound, result.Placements); diff != "" {
		t.Errorf("nodes (-real +replay):\n%s", diff)
	}
}

// settle creates the pods of a job and notes the node of each, empty for one that does not fit, when the scheduler has
// settled all. A pod that the replay places has to be placed: its scheduler may refuse it first, while a gang is
// planned in several cycles.
func settle(t *testing.T, cluster *box.Box, job *trace.Job, profile string, replayedOn, nodes map[string]string) {
	t.Helper()
	if job.Gang {
		if _, err := cluster.Dynamic.Resource(podGroups).Namespace(replayed).Create(t.Context(),
			read.NewPodGroup(replayed, job.Name, job.Pods), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range job.Pods {
		if _, err := cluster.Client.CoreV1().Pods(replayed).Create(t.Context(), podOf(job, i, profile),
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	there := *cluster
	there.Namespace = replayed
	there.AwaitPods(t, job.Name+" to be settled", func(pods []*v1.Pod) (bool, error) {
		for _, pod := range pods {
			key := pod.Namespace + "/" + pod.Name
			nodes[key] = pod.Spec.NodeName
			if pod.Spec.NodeName == "" && (box.Reason(pod) == "" || replayedOn[key] != "") {
				return false, nil
			}
		}
		return true, nil
	})
}

// podOf is a pod of a job as a user would write it.
func podOf(job *trace.Job, index int, profile string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: job.PodName(index)},
		Spec: v1.PodSpec{SchedulerName: profile, RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{
			Name: "main", Image: "replay.invalid/main", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
				v1.ResourceCPU:    *resource.NewMilliQuantity(job.CPUMilli, resource.DecimalSI),
				v1.ResourceMemory: *resource.NewQuantity(job.MemoryMiB<<20, resource.BinarySI),
			}},
		}}},
	}
	keys := gpuview.DefaultKeys()
	switch {
	case job.GPUs > 0 && job.GPUMilli < 1000:
		express.Share(pod, job.GPUMilli)
	case job.GPUs > 0:
		express.Whole(&keys, pod, job.GPUs)
	}
	if len(job.Models) > 0 {
		express.Models(&keys, pod, job.Models)
	}
	if job.Spot != "" {
		priceview.SetSpotPolicy(pod, priceview.SpotPolicy(job.Spot))
	}
	if job.Gang {
		read.Join(pod, job.Name)
	}
	// The API server wants equal limits for extended resources.
	resources := &pod.Spec.Containers[0].Resources
	resources.Limits = resources.Requests.DeepCopy()
	return pod
}
