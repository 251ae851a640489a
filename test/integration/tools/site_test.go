package tools_test

import (
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	authenticationv1 "k8s.io/api/authentication/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"

	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// site is a test's part of a control plane that several share, with names of profiles for a scheduler of its own.
type site struct{ *box.Box }

func newSite(t *testing.T, shared *box.Box, name, nodes string) site {
	t.Helper()
	return site{shared.Part(t, name, strings.ReplaceAll(nodes, "SITE", name))}
}

// These are nodes of sites, with the name of theirs.
const (
	smallNode = "shapes: [{name: SITE, count: 1, allocatable: {cpu: 8, memory: 16Gi}}]"
	largeNode = "shapes: [{name: SITE, count: 1, allocatable: {cpu: 80, memory: 160Gi, pods: 1000}}]"
	gpuNode   = `shapes: [{name: SITE, count: 1, labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}, allocatable: {cpu: 96, memory: 1Ti, nvidia.com/gpu: 8}}]`
)

// profile is the name that a shipped profile has here.
func (s site) profile(shipped string) string { return shipped + "-" + s.Namespace }

var schedulerName = regexp.MustCompile(`(?m)^( *-? *schedulerName: )([a-z-]+)$`)

// patientElection are times of the leader election with which a scheduler outlasts a stall of the machine: nothing
// starts one that has lost its lease again. One that is stopped gives its lease back.
const patientElection = "  leaseDuration: 120s\n  renewDeadline: 110s\n  retryPeriod: 2s\n"

// config changes a configuration so that its scheduler serves this site alone: its profiles, its lease, and how it
// reaches the API server.
func (s site) config(t *testing.T, shipped, kubeconfig string) string {
	t.Helper()
	for _, key := range []string{"\nleaderElection:\n", "\nclientConnection:\n"} {
		if !strings.Contains(shipped, key) {
			t.Fatalf("the configuration has no%s:\n%s", key, shipped)
		}
	}
	changed := schedulerName.ReplaceAllString(shipped, "${1}${2}-"+s.Namespace)
	changed = strings.NewReplacer("  resourceNamespace: kube-system\n", "",
		"  kubeconfig: /etc/kubernetes/scheduler.conf\n", "",
		"\nleaderElection:\n", "\nleaderElection:\n  resourceNamespace: "+s.Namespace+"\n"+patientElection,
		"\nclientConnection:\n", "\nclientConnection:\n  kubeconfig: "+kubeconfig+"\n").Replace(changed)
	return changed
}

// create makes a pod of the profile berth-scheduler.
func (s site) create(t *testing.T, name string, change func(*v1.Pod)) {
	t.Helper()
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PodSpec{SchedulerName: s.profile("berth-scheduler"), Containers: []v1.Container{{
			Name: "c", Image: "none",
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")}},
		}}},
	}
	if change != nil {
		change(pod)
	}
	s.Create(t, pod)
}

// asking has a pod ask for GPUs.
func asking(pod *v1.Pod, gpus string) {
	resources := &pod.Spec.Containers[0].Resources
	resources.Requests["nvidia.com/gpu"] = resource.MustParse(gpus)
	resources.Limits = v1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)}
}

// account is a service account in kube-system with rights that a test chooses.
type account struct {
	box  *box.Box
	name string
}

// newAccount makes a service account that has the rules, and those of the roles, in the whole cluster.
func newAccount(t *testing.T, box *box.Box, name string, rules []rbacv1.PolicyRule, roles ...string) account {
	t.Helper()
	a := account{box, name}
	sa := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := box.Client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).Create(t.Context(), sa,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if _, err := box.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, bound := range append(roles, name) {
		a.bind(t, bound)
	}
	return a
}

// bind gives the account a role.
func (a account) bind(t *testing.T, role string) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: a.name + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: a.name}},
	}
	if _, err := a.box.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.box.AwaitClusterRole(t, "system:serviceaccount:kube-system:"+a.name, role)
}

// kubeconfig writes one with a token of the account, which belongs to a pod if one is given.
func (a account) kubeconfig(t *testing.T, pod *v1.Pod) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name,
			UID: pod.UID}
	}
	token, err := a.box.Client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).CreateToken(t.Context(), a.name, request,
		metav1.CreateOptions{})
	require.NoError(t, err)
	data, err := yaml.Marshal(clientcmdapi.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: "it",
		Clusters: []clientcmdapi.NamedCluster{{Name: "it", Cluster: clientcmdapi.Cluster{
			Server: a.box.Config.Host, CertificateAuthorityData: a.box.Config.CAData, CertificateAuthority: a.box.Config.CAFile,
		}}},
		AuthInfos: []clientcmdapi.NamedAuthInfo{{Name: "it", AuthInfo: clientcmdapi.AuthInfo{Token: token.Status.Token}}},
		Contexts:  []clientcmdapi.NamedContext{{Name: "it", Context: clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}}},
	})
	require.NoError(t, err)
	return write(t, "kubeconfig", string(data))
}

// rulesOf are the rules of the roles in a file of the manifests, those of one namespace included.
func rulesOf(t *testing.T, file string) []rbacv1.PolicyRule {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for document := range strings.SplitSeq(readManifest(t, file), "\n---\n") {
		var role rbacv1.ClusterRole // which has all that a Role has
		require.NoError(t, yaml.Unmarshal([]byte(document), &role))
		if role.Kind == "ClusterRole" || role.Kind == "Role" {
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}
