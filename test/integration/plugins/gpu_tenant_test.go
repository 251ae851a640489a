package plugins_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/test/harness/box"
)

// attackedNode is a shared node of four GPUs.
const attackedNode = `shapes:
- {name: attacked, count: 1, labels: {berth.dev/gpu-mode: shared, nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.count: "4"}, allocatable: {cpu: "16", memory: 64Gi, nvidia.com/gpu: "4"}}
`

// attack is a part with a tenant who has the role "edit" in its namespace, and no other right.
type attack struct {
	gpus
	tenant kubernetes.Interface
}

func newAttack(t *testing.T, part *box.Box) *attack {
	t.Helper()
	a := &attack{gpus: gpus{part}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "tenant"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "tenant"}},
	}
	if _, err := a.Client.RbacV1().RoleBindings(a.Namespace).Create(t.Context(), binding,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.AwaitClusterRole(t, "tenant", "edit")
	config := rest.CopyConfig(a.Config)
	config.Impersonate.UserName = "tenant"
	var err error
	if a.tenant, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return a
}

// create creates the tenant's pod, once the role has reached the authorizer.
func (a *attack) create(t *testing.T, pod *v1.Pod) *v1.Pod {
	t.Helper()
	a.Own(pod)
	var created *v1.Pod
	a.Await(t, "pod "+pod.Name+" to be created", func(ctx context.Context) (bool, error) {
		var err error
		created, err = a.tenant.CoreV1().Pods(a.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err == nil, ignoreForbidden(err)
	})
	return created
}

func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// annotate has the tenant change annotations of a pod.
func (a *attack) annotate(t *testing.T, name string, annotations map[string]any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.tenant.CoreV1().Pods(a.Namespace).Patch(t.Context(), name, types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// granted waits until the pod runs with its devices, and returns the index of its only one.
func (a *attack) granted(t *testing.T, name string) int {
	t.Helper()
	device := -1
	a.AwaitPod(t, name, "to run with its device", func(pod *v1.Pod) (bool, error) {
		if pod.Spec.NodeName == "" || pod.Status.Phase != v1.PodRunning {
			return false, nil
		}
		held, ok := gpuview.Granted(pod)
		if !ok || len(held.Devices) != 1 {
			return false, fmt.Errorf("it runs with the conditions %+v, want one with its device", pod.Status.Conditions)
		}
		device = held.Devices[0]
		return true, nil
	})
	return device
}

// stale are answers in all dialects, and a grant, that say the fourth GPU.
var stale = strs{
	"alibabacloud.com/gpu-index": "3", "alibabacloud.com/assume-time": "1", "runai-gpu": "3",
	"hami.io/vgpu-node":              "elsewhere",
	"hami.io/vgpu-devices-allocated": "GPU-3,NVIDIA,1,1:;", "berth.dev/gpu-assigned": `{"pod":"p","node":"n","devices":[3],"milli":1}`,
}

func with(annotations strs, more ...string) strs {
	all := maps.Clone(annotations)
	for i := 0; i+1 < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

// testTenants plays a tenant who may create and edit pods against the built scheduler, which has the shipped role, over
// kills of it.
func testTenants(t *testing.T, b *box.Box) {
	const node = "attacked-0"
	a := newAttack(t, b.Part(t, "attacked", attackedNode))
	holds := map[int]string{}
	place := func(t *testing.T, name string, annotations strs) {
		t.Helper()
		a.create(t, gpuPod(name, nil, annotations))
		device := a.granted(t, name)
		if other, taken := holds[device]; taken {
			t.Errorf("pods %s and %s were both given 0.9 of GPU %d", other, name, device)
		}
		holds[device] = name
	}

	t.Run("pods on the node by spec.nodeName hold nothing by annotations", func(t *testing.T) {
		defer a.Steady()()
		for name, annotations := range map[string]strs{
			"squat-openb": {"alibabacloud.com/gpu-milli": "1000", "alibabacloud.com/gpu-count": "4",
				"alibabacloud.com/gpu-index": "0-1-2-3"},
			"squat-kai": {"gpu-fraction": "1", "gpu-fraction-num-devices": "4", "runai-gpu": "0,1,2,3"},
		} {
			pod := gpuPod(name, nil, annotations)
			pod.Spec.NodeName = node
			made := a.create(t, pod)
			// Its UID is known by now, and so is all that a grant says.
			forged := fmt.Sprintf(`{"pod":%q,"node":%q,"devices":[0,1,2,3],"milli":1000}`, made.UID, node)
			a.annotate(t, name, map[string]any{"berth.dev/gpu-assigned": forged})
		}
		a.said(t, "squat-openb", "DevicesNotAssigned")
		place(t, "first", with(stale, "gpu-fraction", "0.9"))
	})

	t.Run("stale answers of a pod say nothing after a restart", func(t *testing.T) {
		pod := a.Pod(t, "first")
		for key := range stale {
			if _, ok := pod.Annotations[key]; ok && key != "runai-gpu" && key != "berth.dev/gpu-assigned" {
				t.Errorf("annotation %s = %q is still there", key, pod.Annotations[key])
			}
		}
		a.KillScheduler(t)
		place(t, "second", with(stale, "alibabacloud.com/gpu-milli", "900"))
	})

	t.Run("edits of bound pods change nothing, before and after a restart", func(t *testing.T) {
		func() {
			defer a.Steady()()
			a.annotate(t, "first", map[string]any{"runai-gpu": "3", "alibabacloud.com/gpu-index": "2"})
			gone := map[string]any{"alibabacloud.com/gpu-milli": nil}
			for key := range stale {
				gone[key] = nil
			}
			a.annotate(t, "second", gone)
			a.said(t, "first", "GrantEdited")
		}()
		place(t, "third", strs{"gpu-fraction": "0.9"})
		a.KillScheduler(t)
		place(t, "fourth", strs{"gpu-fraction": "0.9"})
		a.create(t, gpuPod("fifth", nil, strs{"gpu-fraction": "0.9"}))
		a.refused(t, "fifth")
	})

	t.Run("the status is not the tenant's to write", func(t *testing.T) {
		lie := []byte(`{"status":{"conditions":[{"type":"berth.dev/GPUsAssigned","status":"False"}]}}`)
		_, err := a.tenant.CoreV1().Pods(a.Namespace).Patch(t.Context(), "first", types.StrategicMergePatchType, lie,
			metav1.PatchOptions{}, "status")
		if !apierrors.IsForbidden(err) {
			t.Errorf("patching the status: %v, want it forbidden", err)
		}
		// The server takes the pod and drops its status.
		if _, err := a.tenant.CoreV1().Pods(a.Namespace).Patch(t.Context(), "first", types.StrategicMergePatchType, lie,
			metav1.PatchOptions{}); err != nil {
			t.Errorf("patching the pod: %v", err)
		}
		a.granted(t, "first")
		born := gpuPod("born-with-a-grant", nil, nil)
		born.Spec.NodeName = node
		born.Status = v1.PodStatus{Conditions: []v1.PodCondition{{Type: gpuview.GPUsAssigned, Status: v1.ConditionTrue,
			Message: "{}"}}}
		if made := a.create(t, born); strings.Contains(fmt.Sprint(made.Status.Conditions), string(gpuview.GPUsAssigned)) {
			t.Errorf("a pod was created with the conditions %+v", made.Status.Conditions)
		}
	})

	t.Run("an attempt that fails is one line of the log", func(t *testing.T) {
		log, err := os.ReadFile(filepath.Join(a.LogDir(), "scheduler.log"))
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		for _, line := range strings.Split(string(log), "\n") {
			switch {
			case !strings.Contains(line, `pod="attacked/fifth"`):
			case strings.Contains(line, `"Unable to schedule pod; no fit; waiting"`):
				failed++
			default:
				t.Errorf("the log says more of the pod: %s", line)
			}
		}
		if failed == 0 {
			t.Error("the log says nothing of the pod that does not fit")
		}
	})
}
