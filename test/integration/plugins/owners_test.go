package plugins_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// object reads a YAML text.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &o.Object))
	return o
}

func create(t *testing.T, in dynamic.ResourceInterface, text string) *unstructured.Unstructured {
	t.Helper()
	created, err := in.Create(t.Context(), object(t, text), metav1.CreateOptions{})
	require.NoError(t, err)
	return created
}

// kubeflowKind is a kind of Kubeflow's that is served in version v1.
const kubeflowKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.kubeflow.org, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: kubeflow.org
  scope: Namespaced
  names: {plural: %[1]ss, singular: %[1]s, kind: %[2]s, listKind: %[2]sList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// testOwners has pods be gangs of objects that the scheduler cannot read, as their kind is not served yet, or not any
// more, or as its role lacks a right.
func testOwners(t *testing.T, b *box.Box) {
	b = b.Part(t, "owners", `shapes: [{name: owners, count: 1, allocatable: {cpu: "16", memory: 64Gi}}]`)
	// member creates a pod as the training operator makes it.
	member := func(t *testing.T, kind, owner string) string {
		t.Helper()
		name := owner + "-worker-0"
		b.Create(t, pod(name, "gang-scheduler", annotated(strs{wellknown.GangKey: "true"}),
			labeled(strs{"training.kubeflow.org/job-name": owner}), func(p *v1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: "kubeflow.org/v1", Kind: kind, Name: owner, UID: "u", Controller: ptr.To(true)}}
			}))
		return name
	}
	kinds := b.Dynamic.Resource(customResources)
	serve := func(t *testing.T, kind string) dynamic.ResourceInterface {
		t.Helper()
		singular := strings.ToLower(kind)
		create(t, kinds, fmt.Sprintf(kubeflowKind, singular, kind))
		b.AwaitObject(t, kinds, singular+"s.kubeflow.org", "to be served", func(crd *unstructured.Unstructured) (bool,
			error) {
			conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions") // null at first
			return slices.ContainsFunc(conditions, func(c any) bool {
				condition := c.(map[string]any)
				return condition["type"] == "Established" && condition["status"] == "True"
			}), nil
		})
		served := schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: singular + "s"}
		return b.Dynamic.Resource(served).Namespace(b.Namespace)
	}

	t.Run("a kind that the cluster does not serve yet, and then not any more", func(t *testing.T) {
		const unserved = "cannot read pytorchjobs.kubeflow.org: the cluster does not serve them"
		waits := member(t, "PyTorchJob", "train")
		b.Pending(t, waits, unserved)
		jobs := serve(t, "PyTorchJob")
		b.Pending(t, waits, "PyTorchJob owners/train, which says how many pods the gang has, does not exist")
		create(t, jobs, "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: train}, "+
			"spec: {pytorchReplicaSpecs: {Master: {replicas: 1}, Worker: {replicas: 3}}}}")
		b.Pending(t, waits, "1 of the 4 members")
		require.NoError(t, kinds.Delete(t.Context(), "pytorchjobs.kubeflow.org", metav1.DeleteOptions{}))
		b.AwaitGone(t, kinds, "pytorchjobs.kubeflow.org")
		b.Pending(t, member(t, "PyTorchJob", "other"), unserved)
	})

	t.Run("a kind of which an older version is served, and that may not be read until it may", func(t *testing.T) {
		jobs := serve(t, "MPIJob")
		create(t, jobs, "{apiVersion: kubeflow.org/v1, kind: MPIJob, metadata: {name: pi}, "+
			"spec: {mpiReplicaSpecs: {Launcher: {}, Worker: {replicas: 2}}}}")
		mayRead(t, b, "mpijobs", false)
		waits := member(t, "MPIJob", "pi")
		b.Pending(t, waits, "cannot read mpijobs.kubeflow.org: the scheduler's role lacks get, list and watch on "+
			`"mpijobs" in API group "kubeflow.org"`)
		mayRead(t, b, "mpijobs", true)
		b.Pending(t, waits, "1 of the 3 members")
	})
}

// mayRead gives the shipped role the right to read a resource of Kubeflow's, or takes it away, and waits until that
// counts.
func mayRead(t *testing.T, b *box.Box, resource string, may bool) {
	t.Helper()
	roles := b.Client.RbacV1().ClusterRoles()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		role, err := roles.Get(t.Context(), "berth-scheduler", metav1.GetOptions{})
		if err != nil {
			return err
		}
		at := slices.IndexFunc(role.Rules,
			func(r rbacv1.PolicyRule) bool { return slices.Contains(r.APIGroups, "kubeflow.org") })
		if at < 0 {
			return fmt.Errorf("the role %s has no rule about kubeflow.org", role.Name)
		}
		rule := &role.Rules[at]
		if may {
			rule.Resources = append(rule.Resources, resource)
		} else {
			rule.Resources = slices.DeleteFunc(rule.Resources, func(r string) bool { return r == resource })
		}
		_, err = roles.Update(t.Context(), role, metav1.UpdateOptions{})
		return err
	})
	require.NoError(t, err)
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:kube-system:berth-scheduler",
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Group: "kubeflow.org", Resource: resource},
	}}
	b.Await(t, fmt.Sprintf("the right to %s to be %t", resource, may), func(ctx context.Context) (bool, error) {
		answer, err := b.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed == may, err
	})
}
