package tools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/rights"
	"berth.dev/berth/test/harness/box"
)

// startShipped starts a scheduler with the shipped configuration and the kubeconfig of an account.
func (s site) startShipped(t *testing.T, kubeconfig string) *box.Process {
	t.Helper()
	config := s.config(t, read(t, "base/scheduler-config.yaml"), kubeconfig)
	return box.Command(t, "berth-scheduler", "--config="+write(t, "scheduler-config.yaml", config), "--secure-port=0",
		"--v=2")
}

// vital are the rights without which nothing is scheduled, by the first verb of their rule.
var vital = []string{"get nodes", "get namespaces", "get pods", "create pods/binding", "get leases"}

// schedulersWithoutARight each lack the rights to one resource of one shipped rule. Those that share a lease run one
// after the other.
func schedulersWithoutARight(t *testing.T, shared *box.Box) {
	type lack struct {
		rule     rbacv1.PolicyRule
		resource string
	}
	const leases = 3
	var lacks [leases][]lack
	rules, n := append(rulesOf(t, "base/rbac.yaml"), volumeRules(t, shared)...), 0
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			lacks[n%leases] = append(lacks[n%leases], lack{rule, resource})
			n++
		}
	}
	queues := map[string]func(*testing.T){}
	for i := range lacks {
		name := fmt.Sprint("rights-", i)
		queues[name] = func(t *testing.T) {
			s := newSite(t, shared, name, largeNode)
			for _, l := range lacks[i] {
				right := strings.Join(l.rule.Verbs, ",") + " " + rights.Qualified(l.rule.APIGroups[0], l.resource)
				t.Run(right, func(t *testing.T) { s.runsWithout(t, right, rules, l.rule, l.resource) })
			}
		}
	}
	box.SideBySide(t, queues)
}

// runsWithout starts a scheduler that lacks the rights to one resource of a rule.
func (s site) runsWithout(t *testing.T, right string, rules []rbacv1.PolicyRule, rule rbacv1.PolicyRule,
	resource string) {
	t.Helper()
	id := strings.NewReplacer(" ", "-", ",", "-", "/", "-", ".", "-").Replace(right)
	who := newAccount(t, s.Box, id, without(rules, rule, resource))
	process := s.startShipped(t, who.kubeconfig(t, nil))
	// Native groups are behind a feature gate that is off.
	if native := rule.APIGroups[0] == "scheduling.k8s.io" && strings.Contains(resource, "podgroups"); !native {
		process.AwaitLog(t, "The scheduler's account lacks a right", `right="`+rule.Verbs[0]+" "+rights.Qualified(rule.APIGroups[0], resource))
	}
	if slices.Contains(vital, rule.Verbs[0]+" "+resource) {
		process.AwaitLog(t, "The scheduler's account lacks a right", `weight="vital"`)
		return
	}
	s.create(t, id, nil)
	s.Bound(t, id, "")
}

// volumeRules are those of the stock role that the shipped manifests bind besides.
func volumeRules(t *testing.T, shared *box.Box) []rbacv1.PolicyRule {
	t.Helper()
	role, err := shared.Client.RbacV1().ClusterRoles().Get(t.Context(), "system:volume-scheduler", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return role.Rules
}

// without returns the rules without the rights to one resource that one of them grants, whichever else grants them.
func without(rules []rbacv1.PolicyRule, lacking rbacv1.PolicyRule, resource string) []rbacv1.PolicyRule {
	var rest []rbacv1.PolicyRule
	for _, rule := range rules {
		grants := slices.Contains(rule.APIGroups, lacking.APIGroups[0]) &&
			slices.ContainsFunc(rule.Verbs, func(verb string) bool { return slices.Contains(lacking.Verbs, verb) })
		if grants {
			rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(r string) bool { return r == resource })
		}
		if len(rule.Resources) > 0 {
			rest = append(rest, rule)
		}
	}
	return rest
}

func nothingPreemptedWithoutBudgets(t *testing.T, shared *box.Box) {
	s := newSite(t, shared, "budgets", smallNode)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(0)),
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}},
		},
	}
	if _, err := s.Client.PolicyV1().PodDisruptionBudgets(s.Namespace).Create(t.Context(), budget,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	budgets := func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "poddisruptionbudgets") }
	who := newAccount(t, shared, "no-budgets", slices.DeleteFunc(rulesOf(t, "base/rbac.yaml"), budgets),
		"system:volume-scheduler")
	process := s.startShipped(t, who.kubeconfig(t, nil))

	whole := func(priority int32) func(*v1.Pod) {
		return func(pod *v1.Pod) {
			pod.Spec.Priority = &priority
			pod.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("8")
		}
	}
	s.create(t, "low", whole(0))
	s.Bound(t, "low", "")
	s.create(t, "high", func(pod *v1.Pod) {
		whole(0)(pod)
		pod.Spec.Priority, pod.Spec.PriorityClassName = nil, "system-cluster-critical"
	})
	process.AwaitLog(t, "no pod is preempted while the scheduler may not read poddisruptionbudgets.policy")
	if s.Pod(t, "low").DeletionTimestamp != nil {
		t.Fatal("the pod was preempted")
	}

	// The right is granted, and no restart is needed.
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "budgets"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"get", "list", "watch"}},
	}}
	if _, err := s.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	who.bind(t, "budgets")
	process.AwaitLog(t, "The scheduler's account has the right now", "list poddisruptionbudgets.policy")
	s.AwaitPod(t, "low", "to be preempted", func(pod *v1.Pod) (bool, error) { return pod.DeletionTimestamp != nil, nil })
}
