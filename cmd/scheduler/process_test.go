package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	sigsyaml "sigs.k8s.io/yaml"

	authenticationv1 "k8s.io/api/authentication/v1"

	"berth.dev/berth/test/harness/box"
)

// running is a scheduler process of a test. It ends with the test.
type running struct {
	*exec.Cmd
	mu  sync.Mutex
	out bytes.Buffer
}

func (r *running) Write(data []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(data)
}

// log is what the process has logged so far.
func (r *running) log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.String()
}

// stop ends the process as a kubelet does.
func (r *running) stop() {
	_ = r.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = r.Wait()
}

// startProcess starts the real scheduler command.
func startProcess(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{}
	r.Cmd = exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], args...)
	r.Env = append(os.Environ(), asScheduler+"=1")
	r.Stderr = r
	r.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	r.WaitDelay = time.Minute
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r.ProcessState == nil {
			r.stop()
		}
		if t.Failed() {
			t.Log(r.log())
		}
	})
	return r
}

// account is a service account of the scheduler with rights that a test chooses.
type account struct {
	box  *box.Box
	name string
}

const accountNamespace = "kube-system"

// newAccount makes a service account that has the rules in the whole cluster.
func newAccount(t *testing.T, box *box.Box, name string, rules []rbacv1.PolicyRule, roles ...string) account {
	t.Helper()
	a := account{box, name}
	sa := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := box.Client.CoreV1().ServiceAccounts(accountNamespace).Create(t.Context(), sa, metav1.CreateOptions{}); err != nil {
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
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: accountNamespace, Name: a.name}},
	}
	if _, err := a.box.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.box.AwaitClusterRole(t, "system:serviceaccount:"+accountNamespace+":"+a.name, role)
}

// kubeconfig writes one with a token of the account.
func (a account) kubeconfig(t *testing.T) string {
	t.Helper()
	token, err := a.box.Client.CoreV1().ServiceAccounts(accountNamespace).CreateToken(t.Context(), a.name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: "it",
		Clusters: []clientcmdapi.NamedCluster{{Name: "it", Cluster: clientcmdapi.Cluster{
			Server: a.box.Config.Host, CertificateAuthorityData: a.box.Config.CAData, CertificateAuthority: a.box.Config.CAFile,
		}}},
		AuthInfos: []clientcmdapi.NamedAuthInfo{{Name: "it", AuthInfo: clientcmdapi.AuthInfo{Token: token.Status.Token}}},
		Contexts:  []clientcmdapi.NamedContext{{Name: "it", Context: clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}}},
	}
	data, err := sigsyaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// shippedRules are the rules of the shipped roles, those of the lease included.
func shippedRules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	content, err := os.ReadFile("../../manifests/base/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	for _, document := range strings.Split(string(content), "\n---\n") {
		data, err := yaml.ToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		switch role := object.(type) {
		case *rbacv1.ClusterRole:
			rules = append(rules, role.Rules...)
		case *rbacv1.Role:
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}

// create makes a pod of the profile and returns its name.
func create(t *testing.T, box *box.Box, name string, change func(*v1.Pod)) {
	t.Helper()
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: v1.PodSpec{SchedulerName: "berth-scheduler", Containers: []v1.Container{{
			Name: "c", Image: "none", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")}},
		}}},
	}
	if change != nil {
		change(pod)
	}
	if _, err := box.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitBound waits until the pod has a node.
func awaitBound(t *testing.T, box *box.Box, name string) {
	t.Helper()
	box.Await(t, "pod "+name+" to be bound", func(ctx context.Context) (bool, error) {
		pod, err := box.Client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		return err == nil && pod.Spec.NodeName != "", err
	})
}

// awaitLog waits until the process has logged all of the texts on one line.
func (r *running) awaitLog(t *testing.T, box *box.Box, texts ...string) {
	t.Helper()
	box.Await(t, fmt.Sprintf("a line of the log with %q", texts), func(context.Context) (bool, error) {
		for line := range strings.Lines(r.log()) {
			all := true
			for _, text := range texts {
				all = all && strings.Contains(line, text)
			}
			if all {
				return true, nil
			}
		}
		return false, nil
	})
}

// anyone is a client without credentials that trusts the authority of the sandbox.
func anyone(t *testing.T, box *box.Box) *http.Client {
	t.Helper()
	tls, err := rest.TLSConfigFor(rest.AnonymousClientConfig(box.Config))
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: tls, DisableKeepAlives: true}, Timeout: 5 * time.Second}
}
