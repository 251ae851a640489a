package release_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// sharedNode is a node with one GPU that pods share.
const sharedNode = `shapes:
- {name: shared, count: 1, labels: {berth.dev/gpu-mode: shared, nvidia.com/gpu.product: NVIDIA-L4, nvidia.com/gpu.count: "1", nvidia.com/gpu.memory: "23034"}, allocatable: {cpu: "16", memory: 64Gi, nvidia.com/gpu: "1"}}`

// hamiDevicePlugin is an account that may write devices, too.
const hamiDevicePlugin = "system:serviceaccount:kube-system:hami-device-plugin"

// team is a user who may write pods in every way.
const team = "team"

// guarded is a control plane with the policies of manifests/admission. Beside its API server run the scheduler, which
// reads a stand-in for Prometheus, and the controllers of quotas and Jobs.
type guarded struct {
	*box.Box
	// user writes as the team, daemonSets as the controller of DaemonSets.
	user, daemonSets kubernetes.Interface
}

// TestOnAGuardedControlPlane installs the policies once. Its parts change nothing that others rely on.
func TestOnAGuardedControlPlane(t *testing.T) {
	t.Parallel()
	prometheus := httptest.NewServer(http.HandlerFunc(exporter))
	t.Cleanup(prometheus.Close)
	w := &guarded{Box: box.Start(t, sharedNode+meteredNodes+nodesForImages, sandbox.Options{
		NoKubelet: true, Controllers: []string{"resourcequota-controller", "job-controller"},
		SchedulerConfig: measuring(t, prometheus.URL),
	})}
	w.user, w.daemonSets = w.as(t, team), w.as(t, "system:serviceaccount:kube-system:daemon-set-controller")
	w.install(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *guarded)
	}{
		{"malformed values are refused in the words of the scheduler", testValues},
		{"templates of pods are checked like pods", testTemplates},
		{"PodGroups are refused in the words of the scheduler", testPodGroups},
		{"only the scheduler marks a PodGroup as its own", testStandIns},
		{"the example for Kueue refuses shares that quotas cannot count", testKueueExample},
		{"a bad value from before does not stop other changes", testOldValues},
		{"only the scheduler writes devices", testDevices},
		{"licenses of a pod with a node stay", testLicenses},
		{"only the DaemonSet controller makes pods of DaemonSets", testDaemons},
		{"the scheduler places a pod with a share", testScheduled},
		{"the right to write devices follows an overlay with another namespace", testOverlay},
		{"pods of labelled namespaces get scheduler and toleration", testSchedulerName},
		{"quotas count shares that are resources", testQuota},
		{"a stolen token of the scheduler changes of pods what the scheduler changes", testAccount},
		{"the taint is for Berth's own pods", testTaint},
		{"only readers of metrics get them", testMetrics},
		{"the scheduler exports what rules and dashboards use", testExportedMetrics},
		{"the image of the scheduler binds pods", testImageOfTheScheduler},
		{"the image of the extender answers", testImageOfTheExtender},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.run(t, w)
		})
	}
}

// configOf is the configuration of clients of another user.
func (w *guarded) configOf(user string) *rest.Config {
	config := rest.CopyConfig(w.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return config
}

// as is a client of another user.
func (w *guarded) as(t *testing.T, user string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(w.configOf(user))
	require.NoError(t, err)
	return client
}

// install applies the policies, gives the team its rights, and waits until each policy holds.
func (w *guarded) install(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	newApplier(t, w.Config).applyAll(t, "admission")
	w.AwaitClusterRole(t, hamiDevicePlugin, "berth-device-assigner")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: team}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"", "apps", "batch", "scheduling.x-k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}}
	if _, err := w.Client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.bind(t, team, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: team})
	w.bind(t, team, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system",
		Name: "daemon-set-controller"})
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml",
		Labels: map[string]string{wellknown.SchedulerKey: "berth-scheduler"}}}
	if _, err := w.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bad := podWith(map[string]string{wellknown.SpotKey: "x"})
	devices := podWith(map[string]string{wellknown.GPUAssignedKey: "x"})
	tolerant := podWith(nil)
	tolerant.Spec.Tolerations = []corev1.Toleration{{Key: wellknown.SchedulerKey, Operator: corev1.TolerationOpExists}}
	for policy, pod := range map[string]*corev1.Pod{"berth-pod-values": bad, "berth-pod-devices": devices,
		"berth-scheduler-taint": tolerant} {
		w.Await(t, "policy "+policy, func(ctx context.Context) (bool, error) {
			_, err := w.user.CoreV1().Pods("default").Create(ctx, pod, dryRun)
			return err != nil && strings.Contains(err.Error(), "'"+policy+"'"), nil
		})
	}
	w.Await(t, "policy berth-podgroup-values", func(ctx context.Context) (bool, error) {
		return strings.Contains(w.createGroup(ctx, t, map[string]string{wellknown.RoleLabelKey: "/"}), "/"), nil
	})
	w.Await(t, "policy berth-podgroup-stand-ins", func(ctx context.Context) (bool, error) {
		return strings.Contains(w.createGroup(ctx, t, map[string]string{wellknown.StandInKey: "2"}), "the scheduler made"),
			nil
	})
	w.Await(t, "policy berth-scheduler-name", func(ctx context.Context) (bool, error) {
		pod, err := w.user.CoreV1().Pods("ml").Create(ctx, podWith(nil), dryRun)
		return err == nil && pod.Spec.SchedulerName == "berth-scheduler", nil
	})
}

// bind gives a ClusterRole to a user or a service account, and returns when it has these rights.
func (w *guarded) bind(t *testing.T, role string, subject rbacv1.Subject) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: role + "-"}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	if _, err := w.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	user := subject.Name
	if subject.Kind == rbacv1.ServiceAccountKind {
		user = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
	}
	w.AwaitClusterRole(t, user, role)
}

// dryRun is a creation that leaves nothing behind.
var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

func podWith(annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-", Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}
}

// bindingTo binds a pod to the node n.
func bindingTo(pod *corev1.Pod, annotations map[string]string) *corev1.Binding {
	return &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Annotations: annotations},
		Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
}

// denial is what a policy says, empty without an error, and the whole error if no policy said it.
func denial(err error) string {
	if err == nil {
		return ""
	}
	if _, said, found := strings.Cut(err.Error(), "denied request: "); found {
		return said
	}
	return err.Error()
}
