package release_test

import (
	"context"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"berth.dev/berth/test/harness/require"
)

// metricsAs asks the scheduler for its metrics with a token.
func metricsAs(t *testing.T, scheduler *rest.Config, token string) func(context.Context) (string, error) {
	t.Helper()
	config := rest.AnonymousClientConfig(scheduler)
	config.BearerToken = token
	client, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	return func(ctx context.Context) (string, error) {
		content, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		return string(content), err
	}
}

// testMetrics asks the scheduler for its metrics with and without the role for it.
func testMetrics(t *testing.T, w *guarded) {
	ctx := t.Context()
	newApplier(t, w.Config).applyAll(t, "metrics")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "prometheus"}}
	accounts := w.Client.CoreV1().ServiceAccounts("default")
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(ctx, "prometheus", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	scheduler, err := w.SchedulerConfig()
	require.NoError(t, err)

	if _, err := metricsAs(t, scheduler, "wrong")(ctx); !apierrors.IsUnauthorized(err) {
		t.Errorf("with a wrong token: error %v, want Unauthorized", err)
	}
	metrics := metricsAs(t, scheduler, token.Status.Token)
	if _, err := metrics(ctx); !apierrors.IsForbidden(err) {
		t.Errorf("without the role: error %v, want Forbidden", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "berth-metrics-reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "berth-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "prometheus", Namespace: "default"}},
	}
	if _, err := w.Client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The scheduler remembers a refusal for some seconds, and does not answer while it waits for an answer of the API
	// server that does not come.
	var said error
	defer func() {
		if t.Failed() {
			t.Log(said)
		}
	}()
	w.Await(t, "the metrics with the role", func(ctx context.Context) (bool, error) {
		var content string
		content, said = metrics(ctx)
		return strings.Contains(content, "scheduler_pending_pods"), nil
	})
}
