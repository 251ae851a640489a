package tools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/box"
)

const twoNodes = `shapes:
- {name: advised, count: 2, labels: {nvidia.com/gpu.product: NVIDIA-L4, nvidia.com/gpu.count: "8", nvidia.com/gpu.memory: "23034"}, allocatable: {cpu: "16", memory: 64Gi, nvidia.com/gpu: "8"}}
`

// startsOnceAdviceIsCarriedOut leaves two GPUs free on each of two nodes, so that a pod of three waits until a pod of a
// Deployment has moved to the other node.
func startsOnceAdviceIsCarriedOut(t *testing.T, shared *box.Box) {
	part := shared.Part(t, "advise", twoNodes)
	ctx := t.Context()
	asking := func(gpus string) v1.PodSpec {
		requests := v1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi"),
			"nvidia.com/gpu": resource.MustParse(gpus)}
		return v1.PodSpec{
			SchedulerName: "berth-scheduler",
			Containers: []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{Requests: requests,
				Limits: requests}}},
		}
	}
	deploy := func(name, gpus string) {
		t.Helper()
		labels := map[string]string{"app": name}
		if _, err := part.Client.AppsV1().Deployments(part.Namespace).Create(ctx,
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
						Spec: part.Own(&v1.Pod{Spec: asking(gpus)}).Spec}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	running := func(want int) {
		t.Helper()
		part.AwaitPods(t, fmt.Sprintf("%d pods that run", want), func(pods []*v1.Pod) (bool, error) {
			pods = slices.DeleteFunc(pods, func(pod *v1.Pod) bool { return pod.Status.Phase != v1.PodRunning })
			return len(pods) == want, nil
		})
	}
	filler := asking("8")
	filler.NodeSelector = map[string]string{v1.LabelHostname: "advised-1"}
	part.Create(t, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "filler"}, Spec: filler})
	running(1)
	deploy("large", "5")
	deploy("small", "1")
	running(3)
	part.Remove(t, "filler")
	deploy("larger", "6")
	running(3)
	part.Create(t, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: asking("3")})
	part.Pending(t, "p", "nodes are available")

	// The scheduler hears of nodes and of pods by different watches, so a replacement for an evicted pod can be given
	// the node that was cordoned before. Then the command says so, opens the node, and can be run again.
	for attempt := 1; ; attempt++ {
		status, out, said := berth(t, "advise", "--for=pod/p", "--namespace="+part.Namespace, "--evict", "--yes",
			"--kubeconfig="+part.Kubeconfig())
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
	if part.Pod(t, "p").Spec.NodeName == "" {
		t.Error("the pod has not started")
	}
	running(4)
	nodes, err := part.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		if nodes.Items[i].Spec.Unschedulable {
			t.Errorf("node %s is left cordoned", nodes.Items[i].Name)
		}
	}
}
