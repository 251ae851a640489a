package tools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/pkg/process/rights"
	configurations "berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// startShipped starts a scheduler with the shipped configuration and the kubeconfig of an account.
func (s site) startShipped(t *testing.T, kubeconfig string) *box.Process {
	t.Helper()
	config := s.config(t, readManifest(t, "base/scheduler-config.yaml"), kubeconfig)
	return box.Command(t, "berth-scheduler", "--config="+write(t, "scheduler-config.yaml", config), "--secure-port=0",
		"--v=2")
}

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

// shipped is the shipped configuration as it is for this site.
func (s site) shipped(t *testing.T) *schedulerconfig.KubeSchedulerConfiguration {
	t.Helper()
	parsed, err := configurations.Parse("the shipped configuration",
		[]byte(s.config(t, readManifest(t, "base/scheduler-config.yaml"), s.Kubeconfig())))
	require.NoError(t, err)
	return parsed.Component
}

// runsWithout starts a scheduler that lacks the rights to one resource of a rule. It ends with the reason where nothing
// would be scheduled, and else it schedules.
func (s site) runsWithout(t *testing.T, right string, rules []rbacv1.PolicyRule, rule rbacv1.PolicyRule,
	resource string) {
	t.Helper()
	id := strings.NewReplacer(" ", "-", ",", "-", "/", "-", ".", "-").Replace(right)
	who := newAccount(t, s.Box, id, without(rules, rule, resource))
	process := s.startShipped(t, who.kubeconfig(t, nil))
	if vital := slices.ContainsFunc(rights.For(s.shipped(t)), func(n rights.Need) bool {
		return n.Weight == rights.Vital && n.Group == rule.APIGroups[0] && n.Resource == resource &&
			slices.Contains(rule.Verbs, n.Verb)
	}); vital {
		process.AwaitLog(t, "The scheduler cannot run", " "+rights.Qualified(rule.APIGroups[0], resource))
		return
	}
	// Native groups are behind a feature gate that is off.
	if native := rule.APIGroups[0] == "scheduling.k8s.io" && strings.Contains(resource, "podgroups"); !native {
		process.AwaitLog(t, "Parts of the configuration do not work", " "+rights.Qualified(rule.APIGroups[0], resource))
	}
	s.create(t, id, nil)
	s.Bound(t, id, "")
}

// volumeRules are those of the stock role that the shipped manifests bind besides.
func volumeRules(t *testing.T, shared *box.Box) []rbacv1.PolicyRule {
	t.Helper()
	role, err := shared.Client.RbacV1().ClusterRoles().Get(t.Context(), "system:volume-scheduler", metav1.GetOptions{})
	require.NoError(t, err)
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
