package manifests_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/auth/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/test/harness/require"
)

// ownAndStockRules are the rules of our own roles and of the stock scheduler's.
func ownAndStockRules(t *testing.T) (own, stock []rbacv1.PolicyRule) {
	t.Helper()
	content, err := os.ReadFile("base/rbac.yaml")
	require.NoError(t, err)
	for _, object := range decode(t, "base/rbac.yaml", content) {
		switch role := object.(type) {
		case *rbacv1.ClusterRole:
			own = append(own, role.Rules...)
		case *rbacv1.Role:
			own = append(own, role.Rules...)
		}
	}
	for _, role := range bootstrappolicy.ClusterRoles() {
		if role.Name == "system:kube-scheduler" {
			stock = role.Rules
		}
	}
	if len(own) == 0 || len(stock) == 0 {
		t.Fatalf("found %d rules of our own and %d stock ones", len(own), len(stock))
	}
	return own, stock
}

// missing lists what the servant may do and the owner may not, one line a right.
func missing(owner, servant []rbacv1.PolicyRule) []string {
	_, uncovered := validation.Covers(owner, servant)
	var lines []string
	for _, rule := range uncovered {
		line := fmt.Sprintf("%s %s/%s", strings.Join(rule.Verbs, ","), strings.Join(rule.APIGroups, ","),
			strings.Join(rule.Resources, ","))
		if len(rule.ResourceNames) > 0 {
			line += " " + strings.Join(rule.ResourceNames, ",")
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

func TestOurRightsAreThoseOfTheStockSchedulerButForItsLease(t *testing.T) {
	t.Parallel()
	own, stock := ownAndStockRules(t)
	want := []string{
		"get coordination.k8s.io/leases kube-scheduler",
		"list coordination.k8s.io/leases kube-scheduler",
		"update coordination.k8s.io/leases kube-scheduler",
		"watch coordination.k8s.io/leases kube-scheduler",
		// Coordinated leader election is for the cluster's own scheduler.
		"create coordination.k8s.io/leasecandidates",
		"delete coordination.k8s.io/leasecandidates",
		"deletecollection coordination.k8s.io/leasecandidates",
		"get coordination.k8s.io/leasecandidates",
		"list coordination.k8s.io/leasecandidates",
		"patch coordination.k8s.io/leasecandidates",
		"update coordination.k8s.io/leasecandidates",
		"watch coordination.k8s.io/leasecandidates",
		// These come with system:volume-scheduler, which is bound besides.
		"get /persistentvolumeclaims", "list /persistentvolumeclaims", "watch /persistentvolumeclaims",
		"get /persistentvolumes", "list /persistentvolumes", "watch /persistentvolumes",
		// A group that no longer serves ReplicaSets.
		"get extensions/replicasets",
		"list extensions/replicasets",
		"watch extensions/replicasets",
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, missing(own, stock)); diff != "" {
		t.Errorf("rights of the stock scheduler that we lack (-want +got):\n%s", diff)
	}
}

func TestEveryBindingBindsTheServiceAccountToARoleThatExists(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("base/rbac.yaml")
	require.NoError(t, err)
	subject := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "berth-scheduler", Namespace: "kube-system"}}
	// Bootstrapped by every API server.
	roles := []string{"ClusterRole system:volume-scheduler", "Role extension-apiserver-authentication-reader"}
	var bound []string
	for _, object := range decode(t, "base/rbac.yaml", content) {
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			roles = append(roles, "ClusterRole "+o.Name)
		case *rbacv1.Role:
			roles = append(roles, "Role "+o.Name)
		case *rbacv1.ClusterRoleBinding:
			bound = append(bound, o.RoleRef.Kind+" "+o.RoleRef.Name)
			if diff := cmp.Diff(subject, o.Subjects); diff != "" {
				t.Errorf("subjects of %s (-want +got):\n%s", o.Name, diff)
			}
		case *rbacv1.RoleBinding:
			bound = append(bound, o.RoleRef.Kind+" "+o.RoleRef.Name)
			if diff := cmp.Diff(subject, o.Subjects); diff != "" {
				t.Errorf("subjects of %s (-want +got):\n%s", o.Name, diff)
			}
		}
	}
	slices.Sort(roles)
	slices.Sort(bound)
	if diff := cmp.Diff(roles, bound); diff != "" {
		t.Errorf("roles that are bound (-defined +bound):\n%s", diff)
	}
}

// The stock roles of users take in the roles that their aggregation rules select.
func TestUsersOfANamespaceMayReadOurKindsAndEditPodGroups(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("base/users.yaml")
	require.NoError(t, err)
	roles := bootstrappolicy.ClusterRoles()
	ours := map[string][]rbacv1.PolicyRule{}
	for _, object := range decode(t, "base/users.yaml", content) {
		role := object.(*rbacv1.ClusterRole)
		roles, ours[role.Name] = append(roles, *role), role.Rules
	}
	var granted func(role string) []rbacv1.PolicyRule
	granted = func(role string) []rbacv1.PolicyRule {
		rules := ours[role]
		at := slices.IndexFunc(roles, func(r rbacv1.ClusterRole) bool { return r.Name == role })
		if roles[at].AggregationRule == nil {
			return rules
		}
		for _, by := range roles[at].AggregationRule.ClusterRoleSelectors {
			selector, err := metav1.LabelSelectorAsSelector(&by)
			require.NoError(t, err)
			for i := range roles {
				if selector.Matches(labels.Set(roles[i].Labels)) {
					rules = append(rules, granted(roles[i].Name)...)
				}
			}
		}
		return rules
	}
	view := []string{"get berth.dev/ippools", "get berth.dev/ipreservations", "get berth.dev/placementpolicies",
		"get scheduling.x-k8s.io/podgroups", "list berth.dev/ippools", "list berth.dev/ipreservations",
		"list berth.dev/placementpolicies", "list scheduling.x-k8s.io/podgroups", "watch berth.dev/ippools",
		"watch berth.dev/ipreservations", "watch berth.dev/placementpolicies", "watch scheduling.x-k8s.io/podgroups"}
	edit := slices.Concat(view, []string{"create scheduling.x-k8s.io/podgroups", "delete scheduling.x-k8s.io/podgroups",
		"deletecollection scheduling.x-k8s.io/podgroups", "patch scheduling.x-k8s.io/podgroups",
		"update scheduling.x-k8s.io/podgroups"})
	slices.Sort(edit)
	for role, want := range map[string][]string{"view": view, "edit": edit, "admin": edit, "system:node": nil} {
		if diff := cmp.Diff(want, missing(nil, granted(role)), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("what the role %s may do with our kinds (-want +got):\n%s", role, diff)
		}
	}
}

func TestThePolicyIsAboutTheSchedulersUserAndItsOneKey(t *testing.T) {
	t.Parallel()
	for dir, user := range map[string]string{
		"base": "system:serviceaccount:kube-system:berth-scheduler", "replace-default": "system:kube-scheduler",
	} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			var subjects []rbacv1.Subject
			policies := map[string]*admissionv1.ValidatingAdmissionPolicy{}
			for _, object := range build(t, dir) {
				switch o := object.(type) {
				case *admissionv1.ValidatingAdmissionPolicy:
					policies[o.Name] = o
				case *rbacv1.ClusterRoleBinding:
					if o.Name == "berth-scheduler-hami" {
						subjects = o.Subjects
					}
				}
			}
			policy, account := policies["berth-scheduler"], policies["berth-scheduler-account"]
			if policy == nil || account == nil || len(subjects) != 1 {
				t.Fatalf("policies %v, and the role is bound to %v", policies, subjects)
			}
			bound := subjects[0].Name
			if subjects[0].Kind == rbacv1.ServiceAccountKind {
				bound = "system:serviceaccount:" + subjects[0].Namespace + ":" + bound
			}
			for _, policy := range policies {
				if bound != user || !matches(t, policy, user) {
					t.Errorf("the role is for %s, the policy for %s, want both for %s", bound,
						policy.Spec.MatchConditions[0].Expression, user)
				}
			}
			want := "['" + gpuview.HAMiLockKey + "']"
			if !slices.ContainsFunc(policy.Spec.Variables, func(v admissionv1.Variable) bool { return v.Expression == want }) {
				t.Errorf("no variable of the policy is %s", want)
			}
		})
	}
}

// A lease is made by the program itself, so that removing what was installed leaves it.
func TestThePageOnRemovalNamesEveryLeaseAfterThePolicies(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/install.md")
	require.NoError(t, err)
	_, removing, _ := strings.Cut(string(page), "\n## Remove\n")
	policies, _, uninstalled := strings.Cut(removing, "helm uninstall")
	if !uninstalled || !strings.Contains(policies, "kubectl delete -k manifests/admission") {
		t.Error("the section on removal does not delete the policies first")
	}
	found := 0
	for _, object := range build(t, "base") {
		role, ok := object.(*rbacv1.Role)
		if !ok {
			continue
		}
		for _, rule := range role.Rules {
			if !slices.Contains(rule.Resources, "leases") {
				continue
			}
			for _, name := range rule.ResourceNames {
				found++
				if _, command, _ := strings.Cut(removing, "-n "+role.Namespace+
					" delete lease "); !slices.Contains(strings.Fields(command), name) {
					t.Errorf("the section on removal leaves the lease %s", name)
				}
			}
		}
	}
	if found != 1 {
		t.Errorf("found %d leases, want 1", found)
	}
}
