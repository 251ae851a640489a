package plugins_test

import (
	"context"
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
	"berth.dev/berth/test/harness/require"
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

// granted waits until the pod runs with its device.
func (a *attack) granted(t *testing.T, name string) {
	t.Helper()
	a.AwaitPod(t, name, "to run with its device", func(pod *v1.Pod) (bool, error) {
		if pod.Spec.NodeName == "" || pod.Status.Phase != v1.PodRunning {
			return false, nil
		}
		held, ok := gpuview.Granted(pod)
		if !ok || len(held.Devices) != 1 {
			return false, fmt.Errorf("it runs with the conditions %+v, want one with its device", pod.Status.Conditions)
		}
		return true, nil
	})
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

// testTenants plays a tenant who may create and edit pods against the built scheduler, which has the shipped role. That
// annotations give and free nothing, over kills of the scheduler too, is in the scenario gpu-shares-are-promised-once.
func testTenants(t *testing.T, b *box.Box) {
	const node = "attacked-0"
	a := newAttack(t, b.Part(t, "attacked", attackedNode))
	a.create(t, gpuPod("first", nil, strs{"gpu-fraction": "0.9"}))
	a.granted(t, "first")

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
		a.create(t, gpuPod("large", nil, strs{"alibabacloud.com/gpu-milli": "900", "alibabacloud.com/gpu-count": "4"}))
		a.refused(t, "large")
		log, err := os.ReadFile(filepath.Join(a.LogDir(), "scheduler.log"))
		require.NoError(t, err)
		failed := 0
		for _, line := range strings.Split(string(log), "\n") {
			switch {
			case !strings.Contains(line, `pod="attacked/large"`):
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
