package tools_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

const agentAccount = "berth-node-agent"

// installAgent gives the account of the agents its rights.
func installAgent(t *testing.T, cluster *box.Box) {
	t.Helper()
	files := []string{"node-agent/rbac.yaml", "node-agent/policy.yaml"}
	if _, err := sandbox.CreateFiles(t.Context(), cluster.Config, metav1.NamespaceSystem, os.DirFS(manifests(t)),
		files...); err != nil {
		t.Fatal(err)
	}
}

// agentKubeconfig has the token of an agent's pod on a node; without a node the token is bound to no pod.
func agentKubeconfig(t *testing.T, cluster *box.Box, node string) string {
	t.Helper()
	who := account{cluster, agentAccount}
	if node == "" {
		return who.kubeconfig(t, nil)
	}
	pod, err := cluster.Client.CoreV1().Pods(metav1.NamespaceSystem).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: agentAccount + "-" + node},
		Spec: corev1.PodSpec{NodeName: node, ServiceAccountName: agentAccount, Containers: []corev1.Container{
			{Name: "node-agent", Image: agentAccount},
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return who.kubeconfig(t, pod)
}

func clientOf(t *testing.T, kubeconfig string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// patch changes a node by a merge patch of that content.
func patch(ctx context.Context, client kubernetes.Interface, node, subresource string, content map[string]any) error {
	encoded, err := json.Marshal(content)
	if err != nil {
		return err
	}
	var subresources []string
	if subresource != "" {
		subresources = append(subresources, subresource)
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, encoded, metav1.PatchOptions{},
		subresources...)
	return err
}

func metadata(field string, value any) map[string]any {
	return map[string]any{"metadata": map[string]any{field: value}}
}

// agentsHaveTheirRights asks as agents of the shipped manifests do. That an agent can publish shows where the scheduler
// follows it.
func agentsHaveTheirRights(t *testing.T, shared *box.Box) {
	for _, name := range []string{"own", "other"} {
		_, err := shared.Client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"zone": "a"},
			Annotations: map[string]string{"berth.dev/price-per-hour": "3.06"},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	installAgent(t, shared)
	own, unbound := clientOf(t, agentKubeconfig(t, shared, "own")), clientOf(t, agentKubeconfig(t, shared, ""))
	links := metadata("annotations", map[string]any{wellknown.GPULinksKey: `{"links":[]}`})
	var last error
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("last answer to a patch of another node: %v", last)
		}
	})
	// A policy counts some time after it was created.
	shared.Await(t, "the policy", func(ctx context.Context) (bool, error) {
		last = patch(ctx, own, "other", "", links)
		return last != nil && strings.Contains(last.Error(), "its token is for own, the request for other"), nil
	})

	t.Run("an agent writes and removes its annotation on its own node", func(t *testing.T) {
		for _, value := range []any{`{"links":[]}`, nil} {
			if err := patch(t.Context(), own, "own", "",
				metadata("annotations", map[string]any{wellknown.GPULinksKey: value})); err != nil {
				t.Errorf("writing %v: %v", value, err)
			}
		}
	})

	for name, tc := range map[string]struct {
		client      kubernetes.Interface
		node        string
		subresource string
		content     map[string]any
		want        string
	}{
		"another node":                    {own, "other", "", links, "its token is for own, the request for other"},
		"a token that is bound to no pod": {unbound, "own", "", links, "its token is for no node, the request for own"},
		"a label": {own, "own", "", metadata("labels", map[string]any{"zone": "b"}),
			"may only change annotations of a node"},
		"a taint": {own, "own", "",
			map[string]any{"spec": map[string]any{"taints": []any{map[string]any{"key": "k", "effect": "NoSchedule"}}}},
			"may only change annotations of a node"},
		"cordoning": {own, "own", "", map[string]any{"spec": map[string]any{"unschedulable": true}},
			"may only change annotations of a node"},
		"a finalizer": {own, "own", "", metadata("finalizers", []any{"example.com/keep"}),
			"may only change annotations of a node"},
		"an annotation of another": {own, "own", "", metadata("annotations", map[string]any{"example.com/a": "b"}),
			"may only change the annotation berth.dev/gpu-links"},
		"the price of the node": {own, "own", "",
			metadata("annotations", map[string]any{"berth.dev/price-per-hour": "0.01"}),
			"may only change the annotation berth.dev/gpu-links"},
		"the removal of an annotation": {own, "own", "",
			metadata("annotations", map[string]any{"berth.dev/price-per-hour": nil}),
			"may only change the annotation berth.dev/gpu-links"},
		"the status": {own, "own", "status", map[string]any{"status": map[string]any{"allocatable": map[string]any{"nvidia.com/gpu": "64"}}}, `cannot patch resource "nodes/status"`},
	} {
		t.Run("refused: "+name, func(t *testing.T) {
			err := patch(t.Context(), tc.client, tc.node, tc.subresource, tc.content)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want forbidden with %q", err, tc.want)
			}
		})
	}

	t.Run("the policy does not limit other users", func(t *testing.T) {
		if err := patch(t.Context(), shared.Client, "other", "",
			metadata("labels", map[string]any{"zone": "b"})); err != nil {
			t.Error(err)
		}
	})
	t.Run("refused: listing, creating and deleting nodes", func(t *testing.T) {
		_, listing := own.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		_, creating := own.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}},
			metav1.CreateOptions{})
		deleting := own.CoreV1().Nodes().Delete(t.Context(), "own", metav1.DeleteOptions{})
		for _, err := range []error{listing, creating, deleting} {
			if !apierrors.IsForbidden(err) {
				t.Errorf("error %v, want forbidden", err)
			}
		}
	})
}
