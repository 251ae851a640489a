package box

import (
	"context"
	"fmt"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"berth.dev/berth/test/harness/require"
)

// The API server admits and authorizes by what its informers have seen, so that what was created a moment ago does not
// count yet.

// CreatePriorityClass creates a class and returns when pods may have it.
func CreatePriorityClass(ctx context.Context, client kubernetes.Interface, class *schedulingv1.PriorityClass) error {
	if _, err := client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the PriorityClass %s: %w", class.Name, err)
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "any-"},
		Spec:       v1.PodSpec{PriorityClassName: class.Name, Containers: []v1.Container{{Name: "c", Image: "i"}}},
	}
	err := await(ctx, awaitWithin, func(ctx context.Context) (bool, error) {
		trial := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		_, err := client.CoreV1().Pods(v1.NamespaceDefault).Create(ctx, pod, trial)
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("waiting until pods may have the PriorityClass %s: %w", class.Name, err)
	}
	return nil
}

// AwaitClusterRole waits until a user has all rights to resources that a ClusterRole gives, at least in the namespace.
func (b *Box) AwaitClusterRole(t *testing.T, user, role string) {
	t.Helper()
	config := rest.CopyConfig(b.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	b.Await(t, fmt.Sprintf("%s to have the rights of %s", user, role), func(ctx context.Context) (bool, error) {
		want, err := b.Client.RbacV1().ClusterRoles().Get(ctx, role, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{
			Namespace: b.Namespace}}
		has, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		lacks := func(rule rbacv1.PolicyRule) bool {
			return len(rule.Resources) > 0 && !slices.ContainsFunc(has.Status.ResourceRules,
				func(r authorizationv1.ResourceRule) bool {
					return slices.Equal(r.Verbs, rule.Verbs) && slices.Equal(r.APIGroups, rule.APIGroups) &&
						slices.Equal(r.Resources, rule.Resources) && slices.Equal(r.ResourceNames, rule.ResourceNames)
				})
		}
		return !slices.ContainsFunc(want.Rules, lacks), nil
	})
}
