package release_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func testDevices(t *testing.T, w *guarded) {
	ctx := t.Context()
	scheduler := w.as(t, "system:serviceaccount:kube-system:berth-scheduler")
	fresh := func() *corev1.Pod {
		pod, err := w.user.CoreV1().Pods("default").Create(ctx, podWith(nil), metav1.CreateOptions{})
		require.NoError(t, err)
		return pod
	}
	pod, other := fresh(), fresh()
	write := func(key, value string, sub ...string) error {
		patch := []byte(`{"metadata":{"annotations":{"` + key + `":` + value + `}}}`)
		_, err := w.user.CoreV1().Pods("default").Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{},
			sub...)
		return err
	}
	for _, key := range gpuview.AnswerKeys() {
		told := "annotation " + key + " tells a pod its devices or its address: only the scheduler writes it"
		refused := func(what, want string, err error) {
			t.Helper()
			assert.Equal(t, what+" with "+key, want, denial(err))
		}
		_, err := w.user.CoreV1().Pods("default").Create(ctx, podWith(map[string]string{key: "0"}), dryRun)
		refused("creating a pod", told, err)
		refused("patching a pod", told, write(key, `"0"`))
		refused("patching a pod's status", told, write(key, `"0"`, "status"))
		refused("binding a pod", told, w.user.CoreV1().Pods("default").Bind(ctx,
			bindingTo(pod, map[string]string{key: "0"}), metav1.CreateOptions{}))
		patch := []byte(`{"metadata":{"annotations":{"` + key + `":"1"}}}`)
		if _, err := scheduler.CoreV1().Pods("default").Patch(ctx, pod.Name, types.MergePatchType, patch,
			metav1.PatchOptions{}, "status"); err != nil {
			t.Errorf("the scheduler writes %s: %v", key, err)
		}
		refused("changing it", told, write(key, `"2"`))
		refused("removing it", "annotation "+key+" tells the pod its devices or its address: only the scheduler removes it",
			write(key, "null"))
	}
	const recorded = "condition berth.dev/GPUsAssigned records the pod's devices: only the scheduler writes it"
	record := func(client kubernetes.Interface, status string) error {
		patch := []byte(`{"status":{"conditions":[{"type":"berth.dev/GPUsAssigned",` + status + `}]}}`)
		_, err := client.CoreV1().Pods("default").Patch(ctx, pod.Name, types.StrategicMergePatchType, patch,
			metav1.PatchOptions{}, "status")
		return err
	}
	assert.Equal(t, "writing the condition", recorded, denial(record(w.user, `"status":"True","message":"{}"`)))
	if err := record(scheduler, `"status":"True","message":"{}"`); err != nil {
		t.Errorf("the scheduler writes the condition: %v", err)
	}
	for what, change := range map[string]string{"changing": `"message":"[]"`, "removing": `"$patch":"delete"`} {
		assert.Equal(t, what+" the condition", recorded, denial(record(w.user, change)))
	}
	ready := []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	if _, err := w.user.CoreV1().Pods("default").Patch(ctx, pod.Name, types.StrategicMergePatchType, ready,
		metav1.PatchOptions{}, "status"); err != nil {
		t.Errorf("writing another condition, as a kubelet does: %v", err)
	}
	if err := write("example.com/note", `"x"`); err != nil {
		t.Errorf("another annotation of a pod that has devices: %v", err)
	}
	if err := w.user.CoreV1().Pods("default").Bind(ctx, bindingTo(other, nil), metav1.CreateOptions{}); err != nil {
		t.Errorf("a binding without such annotations: %v", err)
	}
	for _, key := range gpuview.AskingKeys() {
		squatter := podWith(map[string]string{key: goodRequests[key]})
		if _, err := w.user.CoreV1().Pods("default").Create(ctx, squatter, dryRun); err != nil {
			t.Errorf("a pod that asks by %s: %v", key, err)
		}
		squatter.Spec.NodeName = "n"
		_, err := w.user.CoreV1().Pods("default").Create(ctx, squatter, dryRun)
		want := "pod with spec.nodeName may not have the annotation " + key +
			": only the scheduler places pods that ask for GPUs with it"
		assert.Equal(t, "a pod on a node that asks by "+key, want, denial(err))
	}
	placed := podWith(nil)
	placed.Spec.NodeName = "n"
	if _, err := w.user.CoreV1().Pods("default").Create(ctx, placed, dryRun); err != nil {
		t.Errorf("a pod on a node that asks for nothing: %v", err)
	}
}

// testLicenses writes the annotation by which licenses are counted, once pods have their node.
func testLicenses(t *testing.T, w *guarded) {
	ctx := t.Context()
	const told = "annotation berth.dev/licenses counts what a pod with a node holds: it cannot be written or changed then"
	pods := w.user.CoreV1().Pods("default")
	expect := func(what, want string, err error) {
		t.Helper()
		assert.Equal(t, what, want, denial(err))
	}
	pod, err := pods.Create(ctx, podWith(map[string]string{wellknown.LicensesKey: "matlab"}), metav1.CreateOptions{})
	require.NoError(t, err)
	patch := func(value string, sub ...string) error {
		_, err := pods.Patch(ctx, pod.Name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"berth.dev/licenses":`+value+`}}}`), metav1.PatchOptions{}, sub...)
		return err
	}
	expect("a change before the pod has a node", "", patch(`"matlab=2"`))
	expect("a binding with it", told, pods.Bind(ctx, bindingTo(pod, map[string]string{wellknown.LicensesKey: "matlab=9"}),
		metav1.CreateOptions{}))
	expect("a binding", "", pods.Bind(ctx, bindingTo(pod, nil), metav1.CreateOptions{}))
	expect("a change", told, patch(`"matlab=9"`))
	expect("a change with the status", told, patch(`"matlab=9"`, "status"))
	expect("removing it", told, patch("null"))
	expect("the same value", "", patch(`"matlab=2"`))
	squatter := podWith(map[string]string{wellknown.LicensesKey: "matlab=9"})
	squatter.Spec.NodeName = "n"
	_, err = pods.Create(ctx, squatter, dryRun)
	expect("a pod with spec.nodeName", told, err)
}

// ofDaemonSet is a pod that refers to a DaemonSet as its controller.
func ofDaemonSet(apiVersion string) *corev1.Pod {
	pod, yes := podWith(nil), true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: "DaemonSet", Name: "agent", UID: "1",
		Controller: &yes}}
	return pod
}

// testDaemons refers to DaemonSets from pods that none has made.
func testDaemons(t *testing.T, w *guarded) {
	ctx := t.Context()
	const told = "pods of DaemonSets may run where others may not: only the DaemonSet controller makes them"
	pods := w.user.CoreV1().Pods("default")
	for _, group := range []string{"apps/v1", "example.com/v1", "v1"} {
		if _, err := pods.Create(ctx, ofDaemonSet(group), dryRun); denial(err) != told {
			t.Errorf("a pod of a DaemonSet of %s: got %q, want %q", group, denial(err), told)
		}
	}
	pod, err := pods.Create(ctx, podWith(nil), metav1.CreateOptions{})
	require.NoError(t, err)
	pod.OwnerReferences = ofDaemonSet("apps/v1").OwnerReferences
	if _, err := pods.Update(ctx, pod, metav1.UpdateOptions{}); denial(err) != told {
		t.Errorf("a pod that becomes one of a DaemonSet: got %q, want %q", denial(err), told)
	}
	made, err := w.daemonSets.CoreV1().Pods("default").Create(ctx, ofDaemonSet("apps/v1"), metav1.CreateOptions{})
	require.NoError(t, err)
	// Its own namespace may change the rest of it.
	made.Labels = map[string]string{"a": "b"}
	if _, err := pods.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Errorf("changing a label of a DaemonSet's pod: %v", err)
	}
}

// The scheduler of the control plane has the shipped role and no more.
func testScheduled(t *testing.T, w *guarded) {
	pod := podWith(map[string]string{"alibabacloud.com/gpu-milli": "300"})
	pod.Spec.SchedulerName = "gpu-aware-scheduler"
	created, err := w.user.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	w.Await(t, "the pod to be bound with its device", func(ctx context.Context) (bool, error) {
		got, err := w.user.CoreV1().Pods("default").Get(ctx, created.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return got.Spec.NodeName != "" && got.Annotations["alibabacloud.com/gpu-index"] == "0" &&
			got.Annotations[wellknown.GPUAssignedKey] != "", nil
	})
}

// goodRequests are values of the asking keys that policies of values read.
var goodRequests = map[string]string{
	wellknown.GPUInterconnectKey: "required", wellknown.GPUMemoryMinKey: "40Gi", wellknown.GPUModelsKey: "Tesla-T4",
	wellknown.GPUSharingKey: "shared",
}

func testOverlay(t *testing.T, w *guarded) {
	ctx := t.Context()
	overlay := t.TempDir()
	var folders []string
	for _, dir := range []string{"base", "admission"} {
		folder, err := filepath.Rel(overlay, filepath.Join(manifests(t), dir))
		require.NoError(t, err)
		folders = append(folders, folder)
	}
	text := "namespace: gpu-system\nresources: [" + strings.Join(folders, ", ") + "]\n"
	require.NoError(t, os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o600))
	var subjects []rbacv1.Subject
	for _, object := range built(t, overlay) {
		var binding rbacv1.ClusterRoleBinding
		if object.GetKind() != "ClusterRoleBinding" || object.GetName() != "berth-scheduler" {
			continue
		}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding))
		subjects = binding.Subjects
	}
	if len(subjects) != 1 || subjects[0].Namespace != "gpu-system" {
		t.Fatalf("subjects of the overlay: %v", subjects)
	}
	w.bind(t, "berth-scheduler", subjects[0])
	w.bind(t, team, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: "hami-device-plugin"})
	pod, err := w.user.CoreV1().Pods("default").Create(ctx, podWith(nil), metav1.CreateOptions{})
	require.NoError(t, err)
	for account, want := range map[string]string{
		"system:serviceaccount:gpu-system:berth-scheduler": "",
		hamiDevicePlugin: "",
		// A team can make an account of any name in its own namespace, and give it the rights that it has itself.
		"system:serviceaccount:ml:berth-scheduler": "annotation berth.dev/gpu-assigned tells a pod its devices or its " +
			"address: only the scheduler writes it",
	} {
		if want != "" {
			w.bind(t, team, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "ml", Name: "berth-scheduler"})
		}
		patch := []byte(`{"metadata":{"annotations":{"berth.dev/gpu-assigned":"{}"}}}`)
		_, err := w.as(t, account).CoreV1().Pods("default").Patch(ctx, pod.Name, types.MergePatchType, patch,
			metav1.PatchOptions{DryRun: dryRun.DryRun}, "status")
		assert.Equal(t, account, want, denial(err))
	}
}

func testSchedulerName(t *testing.T, w *guarded) {
	ours := corev1.Toleration{Key: wellknown.SchedulerKey, Operator: corev1.TolerationOpExists}
	others := corev1.Toleration{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}
	for _, test := range []struct {
		name, namespace, scheduler string
		has, want                  []corev1.Toleration
		wantScheduler              string
	}{
		{"a pod that says nothing", "ml", "", nil, []corev1.Toleration{ours}, "berth-scheduler"},
		{"a pod with tolerations", "ml", "", []corev1.Toleration{others}, []corev1.Toleration{others, ours},
			"berth-scheduler"},
		{"a pod that tolerates it already", "ml", "", []corev1.Toleration{ours}, []corev1.Toleration{ours},
			"berth-scheduler"},
		{"a pod of another profile keeps it", "ml", "gang-scheduler", nil, []corev1.Toleration{ours}, "gang-scheduler"},
		{"a pod of another scheduler keeps it and gets no toleration", "ml", "volcano", nil, nil, "volcano"},
		{"a namespace without the label", "default", "", nil, nil, "default-scheduler"},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := podWith(nil)
			pod.Spec.SchedulerName, pod.Spec.Tolerations = test.scheduler, test.has
			got, err := w.user.CoreV1().Pods(test.namespace).Create(t.Context(), pod, dryRun)
			require.NoError(t, err)
			// The API server adds tolerations of its own to every pod.
			tolerations := slices.DeleteFunc(got.Spec.Tolerations,
				func(t corev1.Toleration) bool { return strings.HasPrefix(t.Key, "node.kubernetes.io/") })
			if len(tolerations) == 0 {
				tolerations = nil
			}
			if diff := cmp.Diff(test.want, tolerations); diff != "" || got.Spec.SchedulerName != test.wantScheduler {
				t.Errorf("scheduler %s, want %s; tolerations (-want +got):\n%s", got.Spec.SchedulerName, test.wantScheduler, diff)
			}
		})
	}
}

func testTaint(t *testing.T, w *guarded) {
	tolerant := func(pod *corev1.Pod, scheduler, key string) *corev1.Pod {
		pod.Spec.SchedulerName = scheduler
		pod.Spec.Tolerations = []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists}}
		return pod
	}
	claiming := tolerant(ofDaemonSet("apps/v1"), "", wellknown.SchedulerKey)
	claiming.OwnerReferences[0].Controller = nil // otherwise another policy refuses it, too
	const refused = "pod of scheduler default-scheduler may not tolerate the taint berth.dev/scheduler: nodes with it " +
		"are for gpu-aware-scheduler, " +
		"cost-optimized-scheduler, gang-scheduler, scheduler-plugins-scheduler, berth-scheduler"
	for _, test := range []struct {
		name, want string
		client     kubernetes.Interface
		pod        *corev1.Pod
	}{
		{"a pod of the default scheduler", refused, w.user, tolerant(podWith(nil), "", wellknown.SchedulerKey)},
		{"a pod that claims to be a DaemonSet's", refused, w.user, claiming},
		{"a pod of a DaemonSet", "", w.daemonSets, tolerant(ofDaemonSet("apps/v1"), "", wellknown.SchedulerKey)},
		{"a pod of Berth", "", w.user, tolerant(podWith(nil), "gang-scheduler", wellknown.SchedulerKey)},
		{"a pod that tolerates everything", "", w.user, tolerant(podWith(nil), "", "")},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := test.client.CoreV1().Pods("default").Create(t.Context(), test.pod, dryRun)
			assert.Equal(t, "", test.want, denial(err))
		})
	}
}
