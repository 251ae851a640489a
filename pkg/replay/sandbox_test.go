package replay

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/pkg/trace"
	"berth.dev/berth/test/harness/box"
)

// unequalNodes differ in size and price, so that no two are the same to any plugin.
func unequalNodes() []trace.Node {
	gib := int64(1024)
	return []trace.Node{
		{Name: "t4-a", CPUMilli: 16_000, MemoryMiB: 64 * gib, GPUs: 2, Model: "Tesla-T4", MicroDollarsPerHour: 1_200_000},
		{Name: "t4-b", CPUMilli: 24_000, MemoryMiB: 90 * gib, GPUs: 4, Model: "Tesla-T4", MicroDollarsPerHour: 2_300_000},
		{Name: "t4-spot", CPUMilli: 20_000, MemoryMiB: 80 * gib, GPUs: 3, Model: "Tesla-T4", MicroDollarsPerHour: 700_000, Spot: true},
		{Name: "a100-a", CPUMilli: 96_000, MemoryMiB: 1000 * gib, GPUs: 8, Model: "NVIDIA-A100-SXM4-80GB", MicroDollarsPerHour: 27_450_000},
		{Name: "a100-b", CPUMilli: 112_000, MemoryMiB: 1200 * gib, GPUs: 8, Model: "NVIDIA-A100-SXM4-80GB", MicroDollarsPerHour: 29_100_000},
		{Name: "plain-a", CPUMilli: 16_000, MemoryMiB: 64 * gib, MicroDollarsPerHour: 400_000},
		{Name: "plain-spot", CPUMilli: 34_000, MemoryMiB: 128 * gib, MicroDollarsPerHour: 310_000, Spot: true},
	}
}

// mixedJobs ask in turn for all that a trace can ask for. They come far enough apart for each to be settled before the next.
func mixedJobs() []trace.Job {
	job := func(name string, cpu int64, gpus, milli int) trace.Job {
		return trace.Job{Name: name, Pods: 1, CPUMilli: cpu, MemoryMiB: 2 * cpu, GPUs: gpus, GPUMilli: milli}
	}
	model, spot, gang, tooLarge := job("model", 4000, 1, 1000), job("spot", 3000, 0, 0), job("gang", 8000, 3, 1000), job("too-large", 1000, 9, 1000)
	model.Models = []string{"NVIDIA-A100-SXM4-80GB"}
	spot.Spot = "tolerate"
	gang.Gang, gang.Pods = true, 4
	jobs := []trace.Job{
		job("share-1", 2000, 1, 300), job("whole-1", 3000, 1, 1000), job("share-2", 1000, 1, 600), job("cpu-1", 6000, 0, 0), model, spot,
		gang, job("two", 5000, 2, 1000), tooLarge, job("share-3", 1000, 1, 200), job("cpu-2", 9000, 0, 0), job("whole-2", 2000, 1, 1000),
	}
	for i := range jobs {
		jobs[i].Arrival = time.Duration(i) * 10 * time.Second
	}
	return jobs
}

// TestAReplayPlacesPodsAsARealControlPlaneDoes creates the same pods one after the other in a replay and on a real API server
// with the built scheduler, and compares the nodes.
//
//nolint:tparallel // the parts share one control plane, which has room for one at a time
func TestAReplayPlacesPodsAsARealControlPlaneDoes(t *testing.T) {
	t.Parallel()
	in := NewInput("unequal", unequalNodes(), mixedJobs())
	r := startReality(t, in)
	for _, profile := range []string{"berth-scheduler", "cost-optimized-scheduler", "gpu-aware-scheduler"} {
		t.Run(profile, func(t *testing.T) {
			replayed := mustRun(t, shipped, in, Options{Mode: replayed.VirtualTime, Profile: profile})
			if replayed.Placed != 14 || replayed.Pending != 1 {
				t.Errorf("the replay placed %d pods and left %d pending, want all but the one that is too large", replayed.Placed, replayed.Pending)
			}
			bound := map[string]string{}
			for _, job := range in.Jobs {
				r.run(t, job, profile, replayed.Placements, bound)
			}
			if diff := cmp.Diff(bound, replayed.Placements); diff != "" {
				t.Errorf("nodes (-real +replay):\n%s", diff)
			}
			r.reset(t)
		})
	}
}

// reality is a control plane with the nodes of an input.
type reality struct {
	*box.Box
	dynamic dynamic.Interface
}

func startReality(t *testing.T, in Input) *reality {
	t.Helper()
	list := &v1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	for _, obj := range in.Objects {
		node := obj.DeepCopyObject().(*v1.Node)
		node.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("Node"))
		raw, err := json.Marshal(node)
		if err != nil {
			t.Fatal(err)
		}
		list.Items = append(list.Items, runtime.RawExtension{Raw: raw})
	}
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	box := box.Start(t, string(data), sandbox.Options{NoKubelet: true})
	dynamicClient, err := dynamic.NewForConfig(box.Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := box.Client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return &reality{box, dynamicClient}
}

// run creates the pods of a job and notes the node of each, empty for one that does not fit, when the scheduler has settled
// all. A pod that the replay places has to be placed: its scheduler may refuse it first, while a gang is planned in several
// cycles.
func (r *reality) run(t *testing.T, job trace.Job, profile string, replayed, nodes map[string]string) {
	t.Helper()
	if job.Gang {
		if _, err := r.dynamic.Resource(podGroupResource).Namespace(namespace).Create(t.Context(), podGroupObject(&job), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range job.Pods {
		pod := podObject(&job, i, 0, profile, shares)
		pod.UID, pod.Status = "", v1.PodStatus{}
		// The API server wants equal limits for extended resources.
		resources := &pod.Spec.Containers[0].Resources
		resources.Limits = resources.Requests.DeepCopy()
		if _, err := r.Client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r.Await(t, job.Name+" to be settled", func(ctx context.Context) (bool, error) {
		list, err := r.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			pod := &list.Items[i]
			key := pod.Namespace + "/" + pod.Name
			nodes[key] = pod.Spec.NodeName
			_, decided := podutil.GetPodCondition(&pod.Status, v1.PodScheduled)
			if pod.Spec.NodeName == "" && (decided == nil || replayed[key] != "") {
				return false, nil
			}
		}
		return true, nil
	})
}

// reset removes the pods and has the scheduler begin again, without what it has learnt.
func (r *reality) reset(t *testing.T) {
	t.Helper()
	now := int64(0)
	if err := r.Client.CoreV1().Pods(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := r.dynamic.Resource(podGroupResource).Namespace(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	r.KillScheduler(t)
}
