package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// hamiFleet is two nodes of three GPUs that HAMi's device plugin gives out, ten tasks to each.
const hamiFleet = `shapes:
- {name: hami, count: 2, labels: {nvidia.com/gpu.product: Tesla-T4}, allocatable: {cpu: "64", memory: 512Gi,
	nvidia.com/gpu: "30"},
   annotations: {hami.io/node-nvidia-register: "GPU-a,10,16384,100,NVIDIA-Tesla T4,0,true:GPU-b,10,16384,100,NVIDIA-Tesla T4,0,true:GPU-c,10,16384,100,NVIDIA-Tesla T4,0,true:"}}
`

// devicePlugin plays the part of HAMi's device plugin on one node, and of the kubelet that asks it. It is written from
// HAMi's protocol and shares nothing with what the scheduler writes by.
type devicePlugin struct {
	api  kubernetes.Interface
	node string
}

// served is what a container was given.
type served struct {
	uuids     []string
	memoryMiB []string
	cores     string
}

// admit is what the kubelet does with a pod that was bound: it asks for the devices of each container, init containers
// first, and rejects the pod when it gets none.
func (d *devicePlugin) admit(ctx context.Context, pod *v1.Pod) ([]served, error) {
	var all []served
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		n := c.Resources.Limits["nvidia.com/gpu"]
		if n.IsZero() {
			continue
		}
		got, err := d.allocate(ctx, int(n.Value()))
		if err != nil {
			return nil, errors.Join(err, d.status(ctx, pod, v1.PodStatus{Phase: v1.PodFailed,
				Reason: "UnexpectedAdmissionError"}))
		}
		all = append(all, got)
	}
	return all, d.status(ctx, pod, v1.PodStatus{Phase: v1.PodRunning})
}

func (d *devicePlugin) status(ctx context.Context, pod *v1.Pod, status v1.PodStatus) error {
	now, err := d.api.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now.Status.Phase, now.Status.Reason = status.Phase, status.Reason
	_, err = d.api.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{})
	return err
}

// allocate gives devices to the next container of the pod that the node's lock names.
func (d *devicePlugin) allocate(ctx context.Context, ids int) (served, error) {
	node, err := d.api.CoreV1().Nodes().Get(ctx, d.node, metav1.GetOptions{})
	if err != nil {
		return served{}, err
	}
	lock := strings.Split(node.Annotations["hami.io/mutex.lock"], ",")
	if len(lock) != 3 {
		return served{}, fmt.Errorf("node %s has the lock %q", d.node, lock)
	}
	if at, err := time.Parse(time.RFC3339, lock[0]); err != nil || time.Since(at) > 5*time.Minute {
		return served{}, fmt.Errorf("node %s has the lock %q: %w", d.node, lock, err)
	}
	pod, err := d.api.CoreV1().Pods(lock[1]).Get(ctx, lock[2], metav1.GetOptions{})
	if err != nil {
		return served{}, err
	}
	if err := d.pending(pod); err != nil {
		return served{}, err
	}
	lists := strings.Split(pod.Annotations["hami.io/vgpu-devices-to-allocate"], ";")
	next := slices.IndexFunc(lists, func(l string) bool { return l != "" })
	if next < 0 {
		return served{}, errors.Join(errors.New("device request not found"), d.end(ctx, pod, "failed"))
	}
	records := strings.Split(strings.TrimSuffix(lists[next], ":"), ":")
	if len(records) != ids {
		return served{}, errors.Join(fmt.Errorf("device number not matched: %q for %d", lists[next], ids), d.end(ctx,
			pod, "failed"))
	}
	var out served
	for i, record := range records {
		fields := strings.Split(record, ",")
		if len(fields) != 4 || fields[1] != "NVIDIA" {
			return served{}, fmt.Errorf("device %q of pod %s", record, pod.Name)
		}
		out.uuids, out.memoryMiB = append(out.uuids, fields[0]), append(out.memoryMiB, fields[2])
		if i == 0 {
			out.cores = fields[3]
		}
	}
	lists[next] = ""
	left := strings.Join(lists, ";")
	if err := d.annotate(ctx, pod, "hami.io/vgpu-devices-to-allocate", left); err != nil {
		return served{}, err
	}
	if strings.Contains(left, "NVIDIA") {
		return out, nil
	}
	return out, d.end(ctx, pod, "success")
}

// pending checks that the pod is one that waits for its devices on this node.
func (d *devicePlugin) pending(pod *v1.Pod) error {
	seconds, err := strconv.ParseInt(pod.Annotations["hami.io/bind-time"], 10, 64)
	switch phase := pod.Annotations["hami.io/bind-phase"]; {
	case err != nil || time.Since(time.Unix(seconds, 0)) > time.Hour:
		return fmt.Errorf("pod %s was bound at %q", pod.Name, pod.Annotations["hami.io/bind-time"])
	case phase != "allocating":
		return fmt.Errorf("pod %s is in phase %q", pod.Name, phase)
	case pod.Annotations["hami.io/vgpu-node"] != d.node || pod.Spec.NodeName != d.node:
		return fmt.Errorf("pod %s is for node %q and bound to %q", pod.Name, pod.Annotations["hami.io/vgpu-node"],
			pod.Spec.NodeName)
	}
	return nil
}

// end writes the phase and takes the lock away, if it is the pod's.
func (d *devicePlugin) end(ctx context.Context, pod *v1.Pod, phase string) error {
	if err := d.annotate(ctx, pod, "hami.io/bind-phase", phase); err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := d.api.CoreV1().Nodes().Get(ctx, d.node, metav1.GetOptions{})
		if err != nil || !strings.HasSuffix(node.Annotations["hami.io/mutex.lock"], ","+pod.Namespace+","+pod.Name) {
			return err
		}
		delete(node.Annotations, "hami.io/mutex.lock")
		_, err = d.api.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
}

func (d *devicePlugin) annotate(ctx context.Context, pod *v1.Pod, key, value string) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	_, err := d.api.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	return err
}

// onNode is a pod for one of the nodes, one container for each of the lists of requests.
func onNode(name, node string, init []strs, main ...strs) *v1.Pod {
	pod := gpuPod(name, nil, nil)
	pod.Spec.NodeSelector[v1.LabelHostname] = node
	pod.Spec.Containers = nil
	add := func(to *[]v1.Container, prefix string, all []strs) {
		for i, requests := range all {
			c := gpuPod(fmt.Sprint(prefix, i), requests, nil).Spec.Containers[0]
			c.Name = fmt.Sprint(prefix, i)
			*to = append(*to, c)
		}
	}
	add(&pod.Spec.InitContainers, "init", init)
	add(&pod.Spec.Containers, "main", main)
	return pod
}

// toServe waits for the one pod that is bound to the node and waits for its devices. More than one is an error: the
// plugin could not tell them apart.
func (g *gpus) toServe(t *testing.T, node string) *v1.Pod {
	t.Helper()
	var waiting []*v1.Pod
	g.AwaitPods(t, "a pod on "+node, func(pods []*v1.Pod) (bool, error) {
		waiting = slices.DeleteFunc(slices.Clone(pods), func(pod *v1.Pod) bool {
			return pod.Spec.NodeName != node ||
				pod.Status.Phase != v1.PodPending
		})
		return len(waiting) > 0, nil
	})
	if len(waiting) != 1 {
		t.Fatalf("%d pods wait for their devices on %s at once", len(waiting), node)
	}
	return waiting[0]
}

// testHAMi runs the built scheduler with the rights of the shipped roles against the protocol of HAMi's device plugin.
// There are no kubelets: pods stay as they are bound until they are admitted here.
func testHAMi(t *testing.T, b *box.Box) {
	defer b.Steady()()
	g := &gpus{b.Part(t, "hami", hamiFleet)}
	plugins := map[string]*devicePlugin{"hami-0": {g.Client, "hami-0"}, "hami-1": {g.Client, "hami-1"}}
	share := strs{"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4096"}
	want := map[string][]served{}

	t.Run("the scheduler may write the lock to a node and nothing else", func(t *testing.T) {
		g.whatTheSchedulerMayWriteToNodes(t, "hami-0")
	})

	t.Run("every container of every pod is given what it asked for", func(t *testing.T) {
		full := []string{"16384"}
		for _, tc := range []struct {
			pod  *v1.Pod
			want []served
		}{
			{onNode("whole", "hami-0", nil, strs{"nvidia.com/gpu": "1"}), []served{{memoryMiB: full, cores: "0"}}},
			{onNode("memory", "hami-0", nil, share), []served{{memoryMiB: []string{"4096"}, cores: "0"}}},
			{onNode("percentage", "hami-0", nil, strs{"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "25",
				"nvidia.com/gpucores": "20"}),
				[]served{{memoryMiB: []string{"4096"}, cores: "20"}}},
			{onNode("containers", "hami-0", []strs{nil, share}, nil, share, share), []served{
				{memoryMiB: []string{"4096"}, cores: "0"}, {memoryMiB: []string{"4096"}, cores: "0"},
				{memoryMiB: []string{"4096"}, cores: "0"}}},
			{onNode("cores", "hami-1", nil, strs{"nvidia.com/gpu": "1", "nvidia.com/gpucores": "30"}),
				[]served{{memoryMiB: full, cores: "30"}}},
			{onNode("two", "hami-1", nil, strs{"nvidia.com/gpu": "2", "nvidia.com/gpumem": "1000"}),
				[]served{{memoryMiB: []string{"1000", "1000"}, cores: "0"}}},
		} {
			want[tc.pod.Name] = tc.want
			g.Create(t, tc.pod)
		}
		// The first pod of hami-0 is not served yet; those of hami-1 are all the same.
		waits := g.toServe(t, "hami-0").Name
		memory := map[string]int{}
		for _, node := range []string{"hami-1", "hami-1", "hami-0", "hami-0", "hami-0", "hami-0"} {
			pod := g.toServe(t, node)
			if node == "hami-1" && g.toServe(t, "hami-0").Name != waits {
				t.Errorf("another pod than %s was bound to hami-0 before that was served", waits)
			}
			got, err := plugins[node].admit(t.Context(), pod)
			if err != nil {
				t.Fatalf("pod %s: %v (annotations %v)", pod.Name, err, pod.Annotations)
			}
			if len(got) != len(want[pod.Name]) {
				t.Fatalf("pod %s: %d containers were served: %+v", pod.Name, len(got), got)
			}
			held := map[string]int{}
			for i, c := range got {
				if !slices.Equal(c.memoryMiB, want[pod.Name][i].memoryMiB) || c.cores != want[pod.Name][i].cores {
					t.Errorf("pod %s, container %d was given %+v, want %+v", pod.Name, i, c, want[pod.Name][i])
				}
				if len(pod.Spec.InitContainers) > 0 && i == 0 {
					continue // it has ended when the others start
				}
				for k, uuid := range c.uuids {
					mib, err := strconv.Atoi(c.memoryMiB[k])
					require.NoError(t, err)
					held[uuid] += mib
				}
			}
			for uuid, mib := range held {
				memory[node+"/"+uuid] += mib
			}
		}
		for device, mib := range memory {
			if mib > 16384 {
				t.Errorf("%s has %d MiB given out", device, mib)
			}
		}
	})

	t.Run("what the plugin refuses is said and free again", func(t *testing.T) {
		g.Create(t, onNode("refused", "hami-1", nil, strs{"nvidia.com/gpu": "2", "nvidia.com/gpumem": "15000"}))
		pod := g.toServe(t, "hami-1")
		g.Create(t, onNode("next", "hami-1", nil, strs{"nvidia.com/gpu": "1", "nvidia.com/gpumem": "15000"}))
		g.refused(t, "next")
		if _, err := plugins["hami-1"].allocate(t.Context(), 1); err == nil || !strings.Contains(err.Error(),
			"device number not matched") {
			t.Fatalf("allocate = %v, want a refusal", err)
		}
		g.said(t, "refused", "DevicesRefused")
		if err := plugins["hami-1"].status(t.Context(), pod, v1.PodStatus{Phase: v1.PodFailed,
			Reason: "UnexpectedAdmissionError"}); err != nil {
			t.Fatal(err)
		}
		if next := g.toServe(t, "hami-1"); next.Name != "next" {
			t.Errorf("pod %s was bound, want next", next.Name)
		} else if _, err := plugins["hami-1"].admit(t.Context(), next); err != nil {
			t.Error(err)
		}
	})

	t.Run("a lock whose time is over is replaced, and that is said on its pod", func(t *testing.T) {
		idle := onNode("idle", "hami-0", nil, nil)
		idle.Spec.SchedulerName = "nobody"
		g.Create(t, idle)
		lock := time.Now().Add(-6*time.Minute).UTC().Format(time.RFC3339) + "," + g.Namespace + ",idle"
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"hami.io/mutex.lock":%q}}}`, lock)
		if _, err := g.Client.CoreV1().Nodes().Patch(t.Context(), "hami-0", types.MergePatchType, []byte(patch),
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		g.Create(t, onNode("late", "hami-0", nil, strs{"nvidia.com/gpu": "1", "nvidia.com/gpumem": "100"}))
		pod := g.toServe(t, "hami-0")
		g.said(t, "idle", "LockExpired")
		if _, err := plugins["hami-0"].admit(t.Context(), pod); err != nil {
			t.Error(err)
		}
	})

	t.Run("a pod that ends before it is served lets the next one in", func(t *testing.T) {
		small := strs{"nvidia.com/gpu": "1", "nvidia.com/gpumem": "100"}
		g.Create(t, onNode("short", "hami-0", nil, small))
		pod := g.toServe(t, "hami-0")
		g.Create(t, onNode("after", "hami-0", nil, small))
		zero := int64(0)
		err := g.Client.CoreV1().Pods(g.Namespace).Delete(t.Context(), pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: &zero})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		if next := g.toServe(t, "hami-0"); next.Name != "after" {
			t.Errorf("pod %s was bound, want after", next.Name)
		} else if _, err := plugins["hami-0"].admit(t.Context(), next); err != nil {
			t.Error(err)
		}
	})
}
