package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// vital are the kinds without which the extender can answer nothing: it says that it is not ready.
var vital = []string{"nodes", "pods", "namespaces"}

// Each case runs an extender that lacks the rights to one resource of one shipped rule.
//
//nolint:tparallel // the extenders of one process share its metrics
func TestAnExtenderThatLacksARightAnswersWithoutWhatNeedsIt(t *testing.T) {
	t.Parallel()
	box := box.Start(t, nodes, sandbox.Options{NoKubelet: true, NoScheduler: true})
	rules := shippedRules(t)
	lacks := func(t *testing.T, lacking rbacv1.PolicyRule, resource string) *running {
		t.Helper()
		var rest []rbacv1.PolicyRule
		for _, rule := range rules {
			if slices.Equal(rule.APIGroups, lacking.APIGroups) && slices.Equal(rule.Verbs, lacking.Verbs) {
				rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(r string) bool { return r == resource })
			}
			if len(rule.Resources) > 0 {
				rest = append(rest, rule)
			}
		}
		return runExtender(t, accountWith(t, box, strings.ReplaceAll(lacking.Verbs[0]+"-"+resource, "/", "-"), rest), "--leader-elect=false")
	}
	tested := 0
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			tested++
			t.Run(strings.Join(rule.Verbs, ",")+" "+resource, func(t *testing.T) {
				e := lacks(t, rule, resource)
				if slices.Contains(rule.Verbs, "watch") && slices.Contains(vital, resource) {
					e.awaitReady(t, box, "has not seen the whole cluster")
					return
				}
				e.awaitReady(t, box, "ok")
				said := filter(t, e.address, `{"Pod":{"spec":{"containers":[{"resources":{"requests":{"nvidia.com/gpu":"4"}}}]},`+
					`"metadata":{"name":"p","annotations":{"berth.dev/gpu-memory-min":"40Gi"}}},"NodeNames":["a100-0","t4-0"]}`)
				if !strings.Contains(said, `"NodeNames":["a100-0"]`) {
					t.Errorf("a pod for an A100 gets the answer %s", said)
				}
			})
		}
	}
	if tested < 10 {
		t.Errorf("tested %d rights, want those of the shipped roles", tested)
	}
}

// shippedRules are those of the ClusterRoles in the manifests.
func shippedRules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	content, err := os.ReadFile("../../manifests/extender/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "ClusterRole" {
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}

// accountWith is a kubeconfig of an account that has the rules in the whole cluster.
func accountWith(t *testing.T, box *box.Box, name string, rules []rbacv1.PolicyRule) string {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if _, err := box.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: name}},
	}
	if _, err := box.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	box.AwaitClusterRole(t, "system:serviceaccount:kube-system:"+name, name)
	return impersonating(t, box, name)
}
