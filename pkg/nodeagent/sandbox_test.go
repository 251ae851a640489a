package nodeagent

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/kubeview"
	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

const account = "berth-node-agent"

// agentClient is a client with the token of an agent's pod on a node; without a node the token is bound to no pod.
func agentClient(t *testing.T, box *box.Box, node string) kubernetes.Interface {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(3600))}}
	if node != "" {
		pod, err := box.Client.CoreV1().Pods(metav1.NamespaceSystem).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: account + "-" + node},
			Spec: corev1.PodSpec{NodeName: node, ServiceAccountName: account, Containers: []corev1.Container{
				{Name: "node-agent", Image: account},
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}
	answer, err := box.Client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).CreateToken(t.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(box.Config)
	config.BearerToken = answer.Status.Token
	config.QPS, config.Burst = 500, 500
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
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
	_, err = client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, encoded, metav1.PatchOptions{}, subresources...)
	return err
}

func metadata(field string, value any) map[string]any {
	return map[string]any{"metadata": map[string]any{field: value}}
}

// TestTheRightsOfAnAgentOnARealAPIServer asks as agents of the shipped manifests do.
//
//nolint:tparallel // the parts share one node, and each leaves it as it found it
func TestTheRightsOfAnAgentOnARealAPIServer(t *testing.T) {
	t.Parallel()
	box := box.Start(t, "", sandbox.Options{NoScheduler: true, NoKubelet: true})
	for _, name := range []string{"own", "other"} {
		_, err := box.Client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{"berth.dev/price-per-hour": "3.06"},
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sandbox.CreateObjects(t.Context(), box.Config, metav1.NamespaceSystem, os.DirFS("../../manifests"), "node-agent/rbac.yaml", "node-agent/policy.yaml"); err != nil {
		t.Fatal(err)
	}
	own, unbound := agentClient(t, box, "own"), agentClient(t, box, "")
	var last error
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("last answer to a patch of another node: %v", last)
		}
	})
	// A policy counts some time after it was created.
	box.Await(t, "the policy", func(ctx context.Context) (bool, error) {
		last = patch(ctx, own, "other", "", metadata("annotations", map[string]any{kubeview.GPUsInUseKey: "0"}))
		return last != nil && strings.Contains(last.Error(), "its token is for own, the request for other"), nil
	})

	t.Run("an agent publishes on its own node", func(t *testing.T) {
		w := twoGPUs()
		node := &APINode{Client: own, Name: "own"}
		a := New(w, w, node, Intervals{Kubelet: time.Second, Machine: time.Second, Resync: time.Minute, Stale: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.Run(ctx)
		}()
		defer func() {
			cancel()
			<-done
		}()
		want := published(devicesOfTwo, linksOfTwo, "1")
		box.Await(t, "the annotations", func(ctx context.Context) (bool, error) {
			got, err := box.Client.CoreV1().Nodes().Get(ctx, "own", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			for key, value := range want {
				if got.Annotations[key] != value {
					return false, nil
				}
			}
			return got.Annotations["berth.dev/price-per-hour"] == "3.06", nil
		})
		if err := patch(t.Context(), own, "own", "", metadata("annotations", map[string]any{kubeview.GPULinksKey: nil})); err != nil {
			t.Errorf("removing an annotation of its own: %v", err)
		}
	})

	inUse := metadata("annotations", map[string]any{kubeview.GPUsInUseKey: "0"})
	for name, tc := range map[string]struct {
		client      kubernetes.Interface
		node        string
		subresource string
		content     map[string]any
		want        string
	}{
		"another node":                    {own, "other", "", inUse, "its token is for own, the request for other"},
		"a token that is bound to no pod": {unbound, "own", "", inUse, "its token is for no node, the request for own"},
		"a label":                         {own, "own", "", metadata("labels", map[string]any{"zone": "b"}), "may only change annotations of a node"},
		"a taint":                         {own, "own", "", map[string]any{"spec": map[string]any{"taints": []any{map[string]any{"key": "k", "effect": "NoSchedule"}}}}, "may only change annotations of a node"},
		"cordoning":                       {own, "own", "", map[string]any{"spec": map[string]any{"unschedulable": true}}, "may only change annotations of a node"},
		"a finalizer":                     {own, "own", "", metadata("finalizers", []any{"example.com/keep"}), "may only change annotations of a node"},
		"an annotation of another":        {own, "own", "", metadata("annotations", map[string]any{"example.com/a": "b"}), "may only change the annotations berth.dev/gpu-devices"},
		"the price of the node":           {own, "own", "", metadata("annotations", map[string]any{"berth.dev/price-per-hour": "0.01"}), "may only change the annotations berth.dev/gpu-devices"},
		"the removal of an annotation":    {own, "own", "", metadata("annotations", map[string]any{"berth.dev/price-per-hour": nil}), "may only change the annotations berth.dev/gpu-devices"},
		"the status":                      {own, "own", "status", map[string]any{"status": map[string]any{"allocatable": map[string]any{"nvidia.com/gpu": "64"}}}, `cannot patch resource "nodes/status"`},
	} {
		t.Run("refused: "+name, func(t *testing.T) {
			err := patch(t.Context(), tc.client, tc.node, tc.subresource, tc.content)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want forbidden with %q", err, tc.want)
			}
		})
	}

	t.Run("the policy does not limit other users", func(t *testing.T) {
		if err := patch(t.Context(), box.Client, "other", "", metadata("labels", map[string]any{"zone": "b"})); err != nil {
			t.Error(err)
		}
	})
	t.Run("refused: listing, creating and deleting nodes", func(t *testing.T) {
		_, listing := own.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		_, creating := own.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
		deleting := own.CoreV1().Nodes().Delete(t.Context(), "own", metav1.DeleteOptions{})
		for _, err := range []error{listing, creating, deleting} {
			if !apierrors.IsForbidden(err) {
				t.Errorf("error %v, want forbidden", err)
			}
		}
	})
}
