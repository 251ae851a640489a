package manifests_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"berth.dev/berth/pkg/kubeview"
)

func TestTheNodeAgentMayReadAndPatchNodesAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, object := range build(t, "node-agent") {
		role, ok := object.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		want := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch"}}}
		if diff := cmp.Diff(want, role.Rules); diff != "" {
			t.Errorf("rules (-want +got):\n%s", diff)
		}
		return
	}
	t.Error("no ClusterRole")
}

func TestThePolicyIsAboutTheAgentsAccountAndTheAgentsKeys(t *testing.T) {
	t.Parallel()
	var daemonSet *appsv1.DaemonSet
	var policy *admissionv1.ValidatingAdmissionPolicy
	for _, object := range build(t, "node-agent") {
		switch o := object.(type) {
		case *appsv1.DaemonSet:
			daemonSet = o
		case *admissionv1.ValidatingAdmissionPolicy:
			policy = o
		}
	}
	if daemonSet == nil || policy == nil {
		t.Fatal("no DaemonSet or no policy")
	}
	account := "'system:serviceaccount:" + daemonSet.Namespace + ":" + daemonSet.Spec.Template.Spec.ServiceAccountName + "'"
	if condition := policy.Spec.MatchConditions[0].Expression; !strings.HasSuffix(condition, "== "+account) {
		t.Errorf("the policy matches %s, the DaemonSet runs as %s", condition, account)
	}
	want := "['" + strings.Join(kubeview.AgentKeys, "', '") + "']"
	if !slices.ContainsFunc(policy.Spec.Variables, func(v admissionv1.Variable) bool { return v.Expression == want }) {
		t.Errorf("no variable of the policy is %s", want)
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
		if *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem || !slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("security context %v", security)
		}
		for _, mount := range container.VolumeMounts {
			if !mount.ReadOnly {
				t.Errorf("it may write to %s", mount.MountPath)
			}
		}
		return
	}
	t.Error("no DaemonSet")
}
