package manifests_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestTheNodeAgentMayReadAndPatchNodesAndAskWhoMayReadMetrics(t *testing.T) {
	t.Parallel()
	for _, object := range build(t, "node-agent") {
		role, ok := object.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		want := []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch"}},
			{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
			{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"},
				Verbs: []string{"create"}},
		}
		if diff := cmp.Diff(want, role.Rules); diff != "" {
			t.Errorf("rules (-want +got):\n%s", diff)
		}
		return
	}
	t.Error("no ClusterRole")
}

// TestTheOverlayForGKEGivesTheAgentTheDriverOfTheNode: there the container runtime adds nothing.
func TestTheOverlayForGKEGivesTheAgentTheDriverOfTheNode(t *testing.T) {
	t.Parallel()
	objects := build(t, "node-agent-gke")
	i := slices.IndexFunc(objects, func(o runtime.Object) bool { _, ok := o.(*appsv1.DaemonSet); return ok })
	if i < 0 {
		t.Fatal("no DaemonSet")
	}
	pod := objects[i].(*appsv1.DaemonSet).Spec.Template.Spec
	container := pod.Containers[0]
	const inside = "/usr/local/nvidia"
	mount := slices.IndexFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == inside })
	if mount < 0 {
		t.Fatalf("nothing is mounted at %s: %v", inside, container.VolumeMounts)
	}
	if m := container.VolumeMounts[mount]; !m.ReadOnly || m.MountPropagation == nil ||
		*m.MountPropagation != corev1.MountPropagationHostToContainer {
		t.Errorf("mount %v, want a read-only one that follows the node's mounts", m)
	}
	if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
		return v.Name == container.VolumeMounts[mount].Name && v.HostPath != nil &&
			v.HostPath.Path == "/home/kubernetes/bin/nvidia"
	}) {
		t.Errorf("volumes %v, want the folder of GKE's driver", pod.Volumes)
	}
	if !slices.Contains(container.Args, "--nvidia-smi="+inside+"/bin/nvidia-smi") {
		t.Errorf("arguments %v, want the path of nvidia-smi", container.Args)
	}
	environment := map[string]string{}
	for _, e := range container.Env {
		environment[e.Name] = e.Value
	}
	want := map[string]string{"LD_LIBRARY_PATH": inside + "/lib64", "NODE_NAME": ""}
	if diff := cmp.Diff(want, environment); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	// An API server refuses privileged containers that must not gain privileges.
	if s := container.SecurityContext; s.Privileged == nil || !*s.Privileged || s.AllowPrivilegeEscalation != nil {
		t.Errorf("security context %v, want a privileged one", s)
	}
	terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 || terms[0].MatchExpressions[0].Key != "cloud.google.com/gke-accelerator" {
		t.Errorf("it runs on nodes with %v, want those with a GPU of GKE", terms)
	}
}

func TestTheNodeAgentHasNoCapabilityAndNoWritableFile(t *testing.T) {
	t.Parallel()
	for _, object := range build(t, "node-agent") {
		daemonSet, ok := object.(*appsv1.DaemonSet)
		if !ok {
			continue
		}
		pod := daemonSet.Spec.Template.Spec
		if pod.HostNetwork || pod.HostPID || pod.HostIPC {
			t.Error("it shares namespaces of the host")
		}
		container := pod.Containers[0]
		security := container.SecurityContext
		if *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem ||
			!slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("security context %v", security)
		}
		if len(container.VolumeMounts) > 0 || !*pod.SecurityContext.RunAsNonRoot {
			t.Errorf("mounts %v, security context %v", container.VolumeMounts, pod.SecurityContext)
		}
		return
	}
	t.Error("no DaemonSet")
}
