package manifests_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	celplugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	admissiondefaults "k8s.io/kubernetes/pkg/apis/admissionregistration/v1"

	"berth.dev/berth/test/harness/require"
)

// overlay writes a kustomization beside nothing else and returns its folder.
func overlay(t *testing.T, base, lines string) string {
	t.Helper()
	dir := t.TempDir()
	here, err := os.Getwd()
	require.NoError(t, err)
	resource, err := filepath.Rel(dir, filepath.Join(here, base))
	require.NoError(t, err)
	content := fmt.Sprintf("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [%s]\n%s",
		resource, lines)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(content), 0o600))
	return dir
}

// matches evaluates the conditions of a policy as an API server does, for a node that the user patches.
func matches(t *testing.T, policy *admissionv1.ValidatingAdmissionPolicy, name string) bool {
	t.Helper()
	conditions := make([]celplugin.ExpressionAccessor, len(policy.Spec.MatchConditions))
	for i := range conditions {
		conditions[i] = (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i])
	}
	compiled := celplugin.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())).
		CompileCondition(
			conditions, celplugin.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
	matcher := matchconditions.NewMatcher(compiled, policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
	node := &corev1.Node{}
	request := admission.NewAttributesRecord(node, node, corev1.SchemeGroupVersion.WithKind("Node"), "", "n",
		corev1.SchemeGroupVersion.WithResource("nodes"), "", admission.Update, nil, false, &user.DefaultInfo{Name: name})
	versioned, err := admission.NewVersionedAttributes(request, request.GetKind(),
		admission.NewObjectInterfacesFromScheme(clientscheme.Scheme))
	require.NoError(t, err)
	result := matcher.Match(t.Context(), versioned, nil, nil)
	if result.Error != nil {
		t.Fatalf("evaluating the conditions of %s: %v", policy.Name, result.Error)
	}
	return result.Matches
}

// TestAPolicyMatchesItsAccountInEveryOverlay: kustomize rewrites names and namespaces of objects, but not those within
// the expressions of a policy, and a policy that matches no request limits no token.
func TestAPolicyMatchesItsAccountInEveryOverlay(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"node-agent", "node-agent-gke", "base"} {
		for name, lines := range map[string]string{
			"as it is":            "",
			"another namespace":   "namespace: gpu\n",
			"a prefix of names":   "namePrefix: team-a-\n",
			"a suffix of names":   "nameSuffix: -canary\n",
			"all of them at once": "namespace: gpu\nnamePrefix: team-a-\nnameSuffix: -canary\n",
		} {
			t.Run(base+", "+name, func(t *testing.T) {
				t.Parallel()
				var namespace, account string
				policies := map[string]*admissionv1.ValidatingAdmissionPolicy{}
				bound := map[string]bool{}
				for _, object := range build(t, overlay(t, base, lines)) {
					switch o := object.(type) {
					case *appsv1.DaemonSet:
						namespace, account = o.Namespace, o.Spec.Template.Spec.ServiceAccountName
					case *appsv1.Deployment:
						namespace, account = o.Namespace, o.Spec.Template.Spec.ServiceAccountName
					case *admissionv1.ValidatingAdmissionPolicy:
						policies[o.Name] = o
					case *admissionv1.ValidatingAdmissionPolicyBinding:
						bound[o.Spec.PolicyName] = true
					}
				}
				if len(policies) == 0 || account == "" {
					t.Fatalf("policies %v, account %q", policies, account)
				}
				if strings.Contains(lines, "namespace") && namespace != "gpu" {
					t.Fatalf("the overlay left namespace %s", namespace)
				}
				user := "system:serviceaccount:" + namespace + ":" + account
				for _, policy := range policies {
					if !bound[policy.Name] {
						t.Errorf("policy %s is not bound, but %v", policy.Name, bound)
					}
					if !matches(t, policy, user) {
						t.Errorf("policy %s does not match %s", policy.Name, user)
					}
					for _, other := range []string{
						"kubernetes-admin", "system:node:berth-node-agent", "system:kube-scheduler",
						"system:serviceaccount:" + namespace + ":default", "system:serviceaccount:" + account + ":default",
					} {
						if matches(t, policy, other) {
							t.Errorf("policy %s matches %s", policy.Name, other)
						}
					}
				}
			})
		}
	}
}

// TestThePoliciesSpellOutWhatTheAPIServerFillsIn: matchConstraints is one value to a server-side apply. If the API
// server has filled it in after a client-side apply, a server-side one of the same file changes it, and that is a
// conflict.
func TestThePoliciesSpellOutWhatTheAPIServerFillsIn(t *testing.T) {
	t.Parallel()
	found := 0
	for _, dir := range []string{"base", "node-agent", "admission"} {
		for _, object := range build(t, dir) {
			filled := object.DeepCopyObject()
			switch policy := filled.(type) {
			case *admissionv1.ValidatingAdmissionPolicy:
				admissiondefaults.SetObjectDefaults_ValidatingAdmissionPolicy(policy)
			case *admissionv1.MutatingAdmissionPolicy:
				admissiondefaults.SetObjectDefaults_MutatingAdmissionPolicy(policy)
			default:
				continue
			}
			found++
			if diff := cmp.Diff(object, filled); diff != "" {
				t.Errorf("%s: a policy (-file +API server):\n%s", dir, diff)
			}
		}
	}
	if found < 9 {
		t.Errorf("found %d policies, want at least 9", found)
	}
}
