package manifests_test

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"berth.dev/berth/pkg/process/rights"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/require"
)

// grant is one right; the namespace of a Role's rules is kube-system.
type grant struct{ Verb, Resource, Name, Namespace string }

func grantsOf(rules []rbacv1.PolicyRule, namespace string) sets.Set[grant] {
	all := sets.New[grant]()
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						all.Insert(grant{verb, rights.Qualified(group, resource), name, namespace})
					}
				}
			}
		}
	}
	return all
}

// shippedGrants are all rights of base/rbac.yaml, with those of the stock roles that it binds.
func shippedGrants(t *testing.T) sets.Set[grant] {
	t.Helper()
	content, err := os.ReadFile("base/rbac.yaml")
	require.NoError(t, err)
	all := sets.New[grant]()
	for _, object := range decode(t, "base/rbac.yaml", content) {
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			all = all.Union(grantsOf(o.Rules, ""))
		case *rbacv1.Role:
			all = all.Union(grantsOf(o.Rules, o.Namespace))
		}
	}
	for _, role := range bootstrappolicy.ClusterRoles() {
		if role.Name == "system:volume-scheduler" {
			all = all.Union(grantsOf(role.Rules, ""))
		}
	}
	for namespace, roles := range bootstrappolicy.NamespaceRoles() {
		for _, role := range roles {
			if role.Name == "extension-apiserver-authentication-reader" {
				all = all.Union(grantsOf(role.Rules, namespace))
			}
		}
	}
	return all
}

// A rule without a need is a right too many, and a need without a rule a feature that does not work. Without any one
// rule of the roles this test fails.
func TestTheRolesGrantWhatTheShippedConfigurationNeedsAndNothingElse(t *testing.T) {
	t.Parallel()
	configuration, err := schedulerconfig.Load("base/scheduler-config.yaml")
	require.NoError(t, err)
	needed := sets.New[grant]()
	for _, need := range rights.For(configuration.Component, rights.NativeGroups) {
		needed.Insert(grant{need.Verb, rights.Qualified(need.Group, need.Resource), need.Name, need.Namespace})
	}
	order := func(all sets.Set[grant]) []grant {
		return slices.SortedFunc(slices.Values(all.UnsortedList()), func(a, b grant) int {
			return slices.Compare([]string{a.Resource, a.Verb, a.Name, a.Namespace},
				[]string{b.Resource, b.Verb, b.Name, b.Namespace})
		})
	}
	if diff := cmp.Diff(order(needed), order(shippedGrants(t))); diff != "" {
		t.Errorf("rights (-needed +granted):\n%s", diff)
	}
}
