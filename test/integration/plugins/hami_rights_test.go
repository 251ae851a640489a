package plugins_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"berth.dev/berth/test/harness/require"
)

// schedulerClient is a client with a token of the scheduler's account.
func (g *gpus) schedulerClient(t *testing.T) kubernetes.Interface {
	t.Helper()
	answer, err := g.Client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).CreateToken(t.Context(), "berth-scheduler",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	config := rest.AnonymousClientConfig(g.Config)
	config.BearerToken = answer.Status.Token
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// whatTheSchedulerMayWriteToNodes asks with a token of the scheduler's account. The annotations of the node are as
// before when it ends.
func (g *gpus) whatTheSchedulerMayWriteToNodes(t *testing.T, node string) {
	client := g.schedulerClient(t)
	patch := func(content string, subresources ...string) error {
		_, err := client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(content),
			metav1.PatchOptions{}, subresources...)
		return err
	}
	annotation := func(key, value string) string { return `{"metadata":{"annotations":{"` + key + `":` + value + `}}}` }
	// A policy counts some time after it was created. What is written until then is taken back at the end; each try
	// writes another price, because a patch that changes nothing is never refused.
	tries := 0
	g.Await(t, "the policy", func(context.Context) (bool, error) {
		tries++
		return patch(annotation("berth.dev/price-per-hour", fmt.Sprintf(`"0.%d"`, 100+tries))) != nil, nil
	})
	const onlyTheLock = "the scheduler may only change the annotation hami.io/mutex.lock of a node"
	const onlyAnnotations = "the scheduler may only change annotations of a node"
	for name, tc := range map[string]struct{ content, subresource, want string }{
		"a price":                      {annotation("berth.dev/price-per-hour", `"0.02"`), "", onlyTheLock},
		"the lock and a price":         {`{"metadata":{"annotations":{"hami.io/mutex.lock":"l","berth.dev/price-per-hour":"0.01"}}}`, "", onlyTheLock},
		"the devices of a node":        {annotation("hami.io/node-nvidia-register", `"GPU-a,100,1,100,NVIDIA-Tesla T4,0,true:"`), "", onlyTheLock},
		"the removal of an annotation": {annotation("hami.io/node-nvidia-register", "null"), "", onlyTheLock},
		"a label":                      {`{"metadata":{"labels":{"zone":"b"}}}`, "", onlyAnnotations},
		"a taint":                      {`{"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}}`, "", onlyAnnotations},
		"cordoning":                    {`{"spec":{"unschedulable":true}}`, "", onlyAnnotations},
		"a finalizer":                  {`{"metadata":{"finalizers":["example.com/keep"]}}`, "", onlyAnnotations},
		"the status":                   {`{"status":{"allocatable":{"nvidia.com/gpu":"64"}}}`, "status", `cannot patch resource "nodes/status"`},
	} {
		if err := patch(tc.content, strings.Fields(tc.subresource)...); !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want forbidden with %q", name, err, tc.want)
		}
	}
	for name, content := range map[string]string{
		"taking the lock": annotation("hami.io/mutex.lock", `"2026-01-01T00:00:00Z,default,gone"`), "giving it back": annotation("hami.io/mutex.lock", "null"),
	} {
		if err := patch(content); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := patch(annotation("hami.io/mutex.lock", "null")); err != nil {
		t.Error(err)
	}
	_, creating := client.CoreV1().Nodes().Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}},
		metav1.CreateOptions{})
	deleting := client.CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{})
	for _, err := range []error{creating, deleting} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("error %v, want forbidden", err)
		}
	}
	// No other pod is held back.
	for _, value := range []string{`"0.01"`, "null"} {
		content := []byte(annotation("berth.dev/price-per-hour", value))
		if _, err := g.Client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, content,
			metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
}
