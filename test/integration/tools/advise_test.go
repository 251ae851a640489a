package tools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/box"
)

// startsOnceAdviceIsCarriedOut leaves two GPUs free on each of two nodes, so that a pod of three waits until a pod of a Deployment has moved
// to the other node.
func startsOnceAdviceIsCarriedOut(t *testing.T, shared *box.Box) {
	const namespace = "advise"
	ctx := t.Context()
	if _, err := shared.Client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := shared.Client.CoreV1().Pods(namespace)
	shared.Await(t, "the service account of the namespace", func(ctx context.Context) (bool, error) {
		list, err := shared.Client.CoreV1().ServiceAccounts(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) > 0, err
	})
	asking := func(gpus string) v1.PodSpec {
		requests := v1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi"), "nvidia.com/gpu": resource.MustParse(gpus)}
		return v1.PodSpec{
			SchedulerName: "berth-scheduler", NodeSelector: map[string]string{"site": "advise"}, Tolerations: []v1.Toleration{{Key: "site", Value: "advise"}},
			Containers: []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{Requests: requests, Limits: requests}}},
		}
	}
	// bare creates a pod that no controller replaces.
	bare := func(name string, spec v1.PodSpec) {
		t.Helper()
		if _, err := pods.Create(ctx, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	deploy := func(name, gpus string) {
		t.Helper()
		labels := map[string]string{"app": name}
		if _, err := shared.Client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: asking(gpus)}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	running := func(want int) {
		t.Helper()
		shared.Await(t, fmt.Sprintf("%d pods that run", want), func(ctx context.Context) (bool, error) {
			list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
			return err == nil && len(list.Items) == want, err
		})
	}
	filler := asking("8")
	filler.NodeSelector[v1.LabelHostname] = "advised-1"
	bare("filler", filler)
	running(1)
	deploy("large", "5")
	deploy("small", "1")
	running(3)
	if err := pods.Delete(ctx, "filler", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
	deploy("larger", "6")
	running(3)
	bare("p", asking("3"))
	shared.Await(t, "a pod that fits no node", func(ctx context.Context) (bool, error) {
		p, err := pods.Get(ctx, "p", metav1.GetOptions{})
		return err == nil && len(p.Status.Conditions) > 0 && p.Status.Conditions[0].Reason == v1.PodReasonUnschedulable, err
	})

	// The scheduler hears of nodes and of pods by different watches, so a replacement for an evicted pod can be given the node that was
	// cordoned before. Then the command says so, opens the node, and can be run again.
	for attempt := 1; ; attempt++ {
		status, out, said := berth(t, "advise", "--for=pod/p", "--namespace="+namespace, "--evict", "--yes", "--kubeconfig="+shared.Kubeconfig())
		if !strings.Contains(out, "evicting ") {
			t.Fatalf("exit status %d, and nothing is evicted:\n%s%s", status, out, said)
		}
		if status == 0 {
			break
		}
		if attempt == 3 {
			t.Fatalf("exit status %d:\n%s%s", status, out, said)
		}
		t.Logf("exit status %d: %s", status, said)
	}
	if p, err := pods.Get(ctx, "p", metav1.GetOptions{}); err != nil || p.Spec.NodeName == "" {
		t.Errorf("the pod has not started: %v", err)
	}
	running(4)
	nodes, err := shared.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		if nodes.Items[i].Spec.Unschedulable {
			t.Errorf("node %s is left cordoned", nodes.Items[i].Name)
		}
	}
}
