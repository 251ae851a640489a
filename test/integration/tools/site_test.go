package tools_test

import (
	"context"
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
)

// site is what one test has of a control plane that several share: a namespace, nodes that only its pods tolerate, and names of profiles for
// a scheduler of its own.
type site struct {
	*box.Box
	name string
}

// newSite makes a site. Its nodes are alike; without names there is one with the name of the site.
func newSite(t *testing.T, shared *box.Box, name string, allocatable map[v1.ResourceName]string, nodes ...string) *site {
	t.Helper()
	s := &site{shared, name}
	if _, err := s.Client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(nodes) == 0 {
		nodes = []string{name}
	}
	for _, node := range nodes {
		object := &v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{
				"site": name, "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.count": "8",
			}},
			Spec:   v1.NodeSpec{Taints: []v1.Taint{{Key: "site", Value: name, Effect: v1.TaintEffectNoSchedule}}},
			Status: v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourcePods: resource.MustParse("1000")}},
		}
		for resourceName, amount := range allocatable {
			object.Status.Allocatable[resourceName] = resource.MustParse(amount)
		}
		if _, err := s.Client.CoreV1().Nodes().Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// These are what nodes of sites have.
var (
	small    = map[v1.ResourceName]string{v1.ResourceCPU: "8", v1.ResourceMemory: "16Gi"}
	large    = map[v1.ResourceName]string{v1.ResourceCPU: "80", v1.ResourceMemory: "160Gi"}
	withGPUs = map[v1.ResourceName]string{v1.ResourceCPU: "96", v1.ResourceMemory: "1Ti", "nvidia.com/gpu": "8"}
)

// profile is the name that a shipped profile has here.
func (s *site) profile(shipped string) string { return shipped + "-" + s.name }

var schedulerName = regexp.MustCompile(`(?m)^( *-? *schedulerName: )([a-z-]+)$`)

// patientElection are times of the leader election with which a scheduler outlasts a stall of the machine: nothing starts one that has
// lost its lease again. One that is stopped gives its lease back.
const patientElection = "  leaseDuration: 120s\n  renewDeadline: 110s\n  retryPeriod: 2s\n"

// config changes a configuration so that its scheduler serves this site alone: its profiles, its lease, and how it reaches the API server.
func (s *site) config(t *testing.T, shipped, kubeconfig string) string {
	t.Helper()
	for _, key := range []string{"\nleaderElection:\n", "\nclientConnection:\n"} {
		if !strings.Contains(shipped, key) {
			t.Fatalf("the configuration has no%s:\n%s", key, shipped)
		}
	}
	changed := schedulerName.ReplaceAllString(shipped, "${1}${2}-"+s.name)
	changed = strings.NewReplacer("  resourceNamespace: kube-system\n", "", "  kubeconfig: /etc/kubernetes/scheduler.conf\n", "",
		"\nleaderElection:\n", "\nleaderElection:\n  resourceNamespace: "+s.name+"\n"+patientElection,
		"\nclientConnection:\n", "\nclientConnection:\n  kubeconfig: "+kubeconfig+"\n").Replace(changed)
	return changed
}

// create makes a pod of the profile berth-scheduler.
func (s *site) create(t *testing.T, name string, change func(*v1.Pod)) {
	t.Helper()
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.name},
		Spec: v1.PodSpec{
			SchedulerName: s.profile("berth-scheduler"), NodeSelector: map[string]string{"site": s.name},
			Tolerations: []v1.Toleration{{Key: "site", Operator: v1.TolerationOpEqual, Value: s.name}},
			Containers: []v1.Container{{
				Name: "c", Image: "none", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")}},
			}},
		},
	}
	if change != nil {
		change(pod)
	}
	if _, err := s.Client.CoreV1().Pods(s.name).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// asking has a pod ask for GPUs.
func asking(pod *v1.Pod, gpus string) {
	resources := &pod.Spec.Containers[0].Resources
	resources.Requests["nvidia.com/gpu"] = resource.MustParse(gpus)
	resources.Limits = v1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)}
}

// bound waits until the pod has a node, and returns its name.
func (s *site) bound(t *testing.T, name string) (node string) {
	t.Helper()
	s.Await(t, "pod "+name+" to be bound", func(ctx context.Context) (bool, error) {
		pod, err := s.Client.CoreV1().Pods(s.name).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		node = pod.Spec.NodeName
		return node != "", nil
	})
	return node
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
	if _, err := box.Client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).Create(t.Context(), sa, metav1.CreateOptions{}); err != nil {
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
	if _, err := a.box.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.box.AwaitClusterRole(t, "system:serviceaccount:kube-system:"+a.name, role)
}

// kubeconfig writes one with a token of the account, which belongs to a pod if one is given.
func (a account) kubeconfig(t *testing.T, pod *v1.Pod) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}
	token, err := a.box.Client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).CreateToken(t.Context(), a.name, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := yaml.Marshal(clientcmdapi.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: "it",
		Clusters: []clientcmdapi.NamedCluster{{Name: "it", Cluster: clientcmdapi.Cluster{
			Server: a.box.Config.Host, CertificateAuthorityData: a.box.Config.CAData, CertificateAuthority: a.box.Config.CAFile,
		}}},
		AuthInfos: []clientcmdapi.NamedAuthInfo{{Name: "it", AuthInfo: clientcmdapi.AuthInfo{Token: token.Status.Token}}},
		Contexts:  []clientcmdapi.NamedContext{{Name: "it", Context: clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "kubeconfig", string(data))
}

// rulesOf are the rules of the roles in a file of the manifests, those of one namespace included.
func rulesOf(t *testing.T, file string) []rbacv1.PolicyRule {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for document := range strings.SplitSeq(read(t, file), "\n---\n") {
		var role rbacv1.ClusterRole // which has all that a Role has
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "ClusterRole" || role.Kind == "Role" {
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}
