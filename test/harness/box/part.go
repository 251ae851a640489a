package box

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/require"
)

// partKey is the label and the taint of the nodes of a part, with its name as the value.
const partKey = "berth.test/part"

// Part returns a test's part of a control plane that others use beside it, until the test ends: a namespace, and nodes
// that only the pods of the part may use. The scheduler has heard of them when it returns. What is in nodes is read as
// sandbox.LoadNodes does.
func (b *Box) Part(t *testing.T, name, nodes string) *Box {
	t.Helper()
	list, err := sandbox.ParseNodes("the nodes of "+name, []byte(nodes))
	require.NoError(t, err)
	part := *b
	part.part = name
	own := metav1.ListOptions{LabelSelector: partKey + "=" + name}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := b.Client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, own); err != nil {
			t.Errorf("removing the nodes of %s: %v", name, err)
		}
	})
	newest := ""
	for _, node := range list {
		node.Labels[partKey] = name
		node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: partKey, Value: name, Effect: v1.TaintEffectNoSchedule})
		made, err := b.Client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
		require.NoError(t, err)
		newest = made.ResourceVersion
	}
	if newest != "" {
		b.AwaitHeard(t, "nodes", newest)
	}
	return part.Tenant(t, name, nil)
}

// Tenant returns the same nodes with another namespace, which has these labels. Its pods go when the test ends.
func (b *Box) Tenant(t *testing.T, namespace string, labels map[string]string) *Box {
	t.Helper()
	tenant := *b
	tenant.Namespace = namespace
	object := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labels}}
	if _, err := b.Client.CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		at := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
		ctx := context.WithoutCancel(t.Context())
		if err := b.Client.CoreV1().Pods(namespace).DeleteCollection(ctx, at, metav1.ListOptions{}); err != nil {
			t.Errorf("removing the pods of %s: %v", namespace, err)
		}
	})
	if b.kubelets {
		// The API server admits no pods before the controller manager has made the account that they have by default.
		accounts := b.Dynamic.Resource(v1.SchemeGroupVersion.WithResource("serviceaccounts")).Namespace(namespace)
		b.AwaitObject(t, accounts, "default", "to be created in namespace "+namespace,
			func(*unstructured.Unstructured) (bool, error) { return true, nil })
	}
	return &tenant
}

// Own makes a pod one of the namespace, and lets it use the nodes of the part and no others. It returns the pod.
func (b *Box) Own(pod *v1.Pod) *v1.Pod {
	pod.Namespace = b.Namespace
	if b.part == "" {
		return pod
	}
	if pod.Spec.NodeSelector == nil {
		pod.Spec.NodeSelector = map[string]string{}
	}
	pod.Spec.NodeSelector[partKey] = b.part
	own := v1.Toleration{Key: partKey, Value: b.part, Effect: v1.TaintEffectNoSchedule}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, own)
	return pod
}

// SideBySide runs tests that share a control plane at the same time, however many tests may run in parallel: they wait
// most of the time. It returns when all have ended.
func SideBySide(t *testing.T, tests map[string]func(*testing.T)) {
	t.Helper()
	ended := make(chan struct{})
	for name, test := range tests {
		go func() {
			defer func() { ended <- struct{}{} }()
			t.Run(name, test)
		}()
	}
	for range tests {
		<-ended
	}
}
