package release_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// stolen is the token of the scheduler in the hands of a thief.
type stolen struct {
	*guarded
	client kubernetes.Interface
}

// testAccount uses the rights of the scheduler's account as a thief of its token would.
func testAccount(t *testing.T, w *guarded) {
	token := stolen{w, w.as(t, "system:serviceaccount:kube-system:berth-scheduler")}
	token.mayNotPatchPods(t)
	token.awaitGuard(t)
	token.mayWriteStatuses(t)
	token.mayBind(t)
}

// pod is one that runs, as far as its status says.
func (s stolen) pod(ctx context.Context, t *testing.T) *corev1.Pod {
	t.Helper()
	pod := podWith(nil)
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/a": resource.MustParse("1")}
	pod, err := s.user.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
	require.NoError(t, err)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}
	if pod, err = s.Client.CoreV1().Pods("default").UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return pod
}

func (s stolen) patch(ctx context.Context, pod *corev1.Pod, patch string, subresources ...string) error {
	_, err := s.client.CoreV1().Pods("default").Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{DryRun: dryRun.DryRun}, subresources...)
	return err
}

// mayNotPatchPods: RBAC refuses it, so that no image can be changed, with or without a policy.
func (s stolen) mayNotPatchPods(t *testing.T) {
	err := s.patch(t.Context(), s.pod(t.Context(), t), `{"spec":{"containers":[{"name":"main","image":"other"}]}}`)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `cannot patch resource "pods"`) {
		t.Errorf("changing an image: error %v, want that the account may not patch pods", err)
	}
}

// awaitGuard waits for the policy, which counts some time after it was created.
func (s stolen) awaitGuard(t *testing.T) {
	pod := s.pod(t.Context(), t)
	s.Await(t, "the policy of the scheduler's account", func(ctx context.Context) (bool, error) {
		return denial(s.patch(ctx, pod, `{"metadata":{"labels":{"app":"stolen"}}}`, "status")) != "", nil
	})
}

func (s stolen) mayWriteStatuses(t *testing.T) {
	field := func(name string) string {
		return "the scheduler may not change " + name + " in the status of a pod, but conditions, nominatedNodeName, " +
			"extendedResourceClaimStatus, nodeAllocatableResourceClaimStatuses"
	}
	condition := func(name string) string {
		return "the scheduler may not change condition " + name + " of a pod, but PodScheduled, DisruptionTarget, " +
			"berth.dev/GPUsAssigned, berth.dev/DeadlineMissed"
	}
	const metadata = "the scheduler may change annotations of pods and a few fields of their status, " +
		"and nothing else of them"
	for name, w := range map[string]struct{ patch, want string }{
		"a label":             {`{"metadata":{"labels":{"app":"stolen"}}}`, metadata},
		"a finalizer":         {`{"metadata":{"finalizers":["example.com/never"]}}`, metadata},
		"the phase":           {`{"status":{"phase":"Failed"}}`, field("phase")},
		"when it started":     {`{"status":{"startTime":"2026-01-01T00:00:00Z"}}`, field("startTime")},
		"a container":         {`{"status":{"containerStatuses":[{"name":"main","image":"i","imageID":"","ready":true,"restartCount":0}]}}`, field("containerStatuses")},
		"a reason":            {`{"status":{"reason":"Evicted"}}`, field("reason")},
		"readiness":           {`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`, condition("Ready")},
		"a condition less":    {`{"status":{"conditions":[{"$patch":"delete","type":"Ready"}]}}`, condition("Ready")},
		"a gate of readiness": {`{"status":{"conditions":[{"type":"example.com/gate","status":"True"}]}}`, condition("example.com/gate")},

		"why it is pending":           {`{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}`, ""},
		"that it is evicted":          {`{"status":{"conditions":[{"type":"DisruptionTarget","status":"True","reason":"PreemptionByScheduler"}]}}`, ""},
		"that it misses its deadline": {`{"status":{"conditions":[{"type":"berth.dev/DeadlineMissed","status":"True","reason":"CannotEndInTime","message":"late"}]}}`, ""},
		"a nomination":                {`{"status":{"nominatedNodeName":"n"}}`, ""},
		"a claim that it has made":    {`{"status":{"extendedResourceClaimStatus":{"resourceClaimName":"c","requestMappings":[{"containerName":"main","resourceName":"example.com/a","requestName":"r"}]}}}`, ""},
		"an address":                  {`{"metadata":{"annotations":{"berth.dev/ip-address":"10.0.0.1"}}}`, ""},
		"devices, in one patch":       {`{"metadata":{"annotations":{"berth.dev/gpu-assigned":"{}"}},"status":{"conditions":[{"type":"berth.dev/GPUsAssigned","status":"True"}]}}`, ""},
		"devices that it takes back":  {`{"status":{"conditions":[{"$patch":"delete","type":"berth.dev/GPUsAssigned"}]}}`, ""},
		"what changes nothing of one": {`{"status":{"phase":"Pending"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, "", w.want, denial(s.patch(t.Context(), s.pod(t.Context(), t), w.patch, "status")))
		})
	}
}

// mayBind: a Binding adds its labels and annotations to the pod. Those of the node's place come from the API server.
func (s stolen) mayBind(t *testing.T) {
	const refused = "the scheduler may not add labels to the pod that it binds"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "placed-",
		Labels: map[string]string{corev1.LabelTopologyZone: "z"}}}
	node, err := s.Client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		labels map[string]string
		want   string
	}{"nothing": {}, "a label": {map[string]string{"app": "stolen"}, refused}} {
		t.Run("a Binding with "+name, func(t *testing.T) {
			pod := s.pod(t.Context(), t)
			binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Labels: tc.labels},
				Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}}
			got := denial(s.client.CoreV1().Pods("default").Bind(t.Context(), binding, metav1.CreateOptions{}))
			assert.Equal(t, "", tc.want, got)
			bound, err := s.Client.CoreV1().Pods("default").Get(t.Context(), pod.Name, metav1.GetOptions{})
			require.NoError(t, err)
			if want := map[bool]string{true: "z"}[tc.want == ""]; bound.Labels[corev1.LabelTopologyZone] != want {
				t.Errorf("the pod has labels %v, want zone %q", bound.Labels, want)
			}
		})
	}
	t.Run("a label by the old resource", func(t *testing.T) {
		pod := s.pod(t.Context(), t)
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: "default",
			Labels: map[string]string{"app": "stolen"}},
			Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}}
		err := s.client.CoreV1().RESTClient().Post().Namespace("default").Resource("bindings").Body(binding).Do(t.Context()).
			Error()
		assert.Equal(t, "", refused, denial(err))
	})
}
