package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/rights"
	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

const oneNode = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: '8', memory: 16Gi, pods: '100'}}\n"

// patientElection are times of the leader election with which a scheduler outlasts a stall of the machine: nothing starts one that has
// lost its lease again. One that is stopped gives its lease back.
const patientElection = "  leaseDuration: 120s\n  renewDeadline: 110s\n  retryPeriod: 2s\n"

// patient is the configuration with those times.
func patient(t *testing.T, config string) string {
	t.Helper()
	const key = "\nleaderElection:\n"
	changed := strings.Replace(config, key, key+patientElection, 1)
	if changed == config {
		t.Fatalf("the configuration has no leaderElection:\n%s", config)
	}
	return changed
}

// withAccount copies the shipped configuration with the kubeconfig of the account, for a scheduler that outlasts stalls.
func withAccount(t *testing.T, kubeconfig string) string {
	t.Helper()
	config, err := os.ReadFile("../../manifests/base/scheduler-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := withKubeconfig(t, config)
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(written), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  kubeconfig: ") {
			lines[i] = "  kubeconfig: " + kubeconfig
		}
	}
	if err := os.WriteFile(file, []byte(patient(t, strings.Join(lines, "\n"))), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// vital are the rights without which nothing is scheduled, by the first verb of their rule.
var vital = []string{"get nodes", "get namespaces", "get pods", "create pods/binding", "get leases"}

// Each case runs a scheduler that lacks the rights to one resource of one shipped rule. They run one after the other: all use one lease.
//
//nolint:tparallel // see above
func TestASchedulerThatLacksARightRunsWithoutWhatNeedsIt(t *testing.T) {
	t.Parallel()
	box := box.Start(t, oneNode, sandbox.Options{NoKubelet: true, NoScheduler: true})
	rules := append(shippedRules(t), volumeRules(t, box)...)
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			name := strings.Join(rule.Verbs, ",") + " " + rights.Qualified(rule.APIGroups[0], resource)
			t.Run(name, func(t *testing.T) {
				id := strings.NewReplacer(" ", "-", ",", "-", "/", "-", ".", "-").Replace(name)
				who := newAccount(t, box, id, without(rules, rule, resource))
				process := startProcess(t, "--config="+withAccount(t, who.kubeconfig(t)), "--secure-port=0", "--v=2")
				// Native groups are behind a feature gate that is off.
				if native := rule.APIGroups[0] == "scheduling.k8s.io" && strings.Contains(resource, "podgroups"); !native {
					process.awaitLog(t, box, "The scheduler's account lacks a right", `right="`+rule.Verbs[0]+" "+rights.Qualified(rule.APIGroups[0], resource))
				}
				if slices.Contains(vital, rule.Verbs[0]+" "+resource) {
					process.awaitLog(t, box, "The scheduler's account lacks a right", `weight="vital"`)
					return
				}
				create(t, box, id, nil)
				awaitBound(t, box, id)
			})
		}
	}
}

// volumeRules are those of the stock role that the shipped manifests bind besides.
func volumeRules(t *testing.T, box *box.Box) []rbacv1.PolicyRule {
	t.Helper()
	role, err := box.Client.RbacV1().ClusterRoles().Get(t.Context(), "system:volume-scheduler", metav1.GetOptions{})
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

func TestNoPodIsPreemptedWhileBudgetsCannotBeRead(t *testing.T) {
	t.Parallel()
	box := box.Start(t, oneNode, sandbox.Options{NoKubelet: true, NoScheduler: true})
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}},
		},
	}
	if _, err := box.Client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault).Create(t.Context(), budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	budgets := func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "poddisruptionbudgets") }
	who := newAccount(t, box, "no-budgets", slices.DeleteFunc(shippedRules(t), budgets), "system:volume-scheduler")
	process := startProcess(t, "--config="+withAccount(t, who.kubeconfig(t)), "--secure-port=0", "--v=2")

	whole := func(priority int32) func(*v1.Pod) {
		return func(pod *v1.Pod) {
			pod.Spec.Priority = &priority
			pod.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("8")
		}
	}
	create(t, box, "low", whole(0))
	awaitBound(t, box, "low")
	create(t, box, "high", func(pod *v1.Pod) {
		whole(0)(pod)
		pod.Spec.Priority, pod.Spec.PriorityClassName = nil, "system-cluster-critical"
		pod.Namespace = metav1.NamespaceDefault
	})
	process.awaitLog(t, box, "no pod is preempted while the scheduler may not read poddisruptionbudgets.policy")
	if _, err := box.Client.CoreV1().Pods(metav1.NamespaceDefault).Get(t.Context(), "low", metav1.GetOptions{}); err != nil {
		t.Fatalf("the pod was preempted: %v", err)
	}

	// The right is granted, and no restart is needed.
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "budgets"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"get", "list", "watch"}},
	}}
	if _, err := box.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	who.bind(t, "budgets")
	process.awaitLog(t, box, "The scheduler's account has the right now", "list poddisruptionbudgets.policy")
	box.Await(t, "the pod to be preempted", func(ctx context.Context) (bool, error) {
		pod, err := box.Client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, "low", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && pod.DeletionTimestamp != nil, err
	})
}
