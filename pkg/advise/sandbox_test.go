package advise

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/dump"
	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/box"
)

const twoNodes = `shapes:
- {name: gpu, count: 2, labels: {nvidia.com/gpu.product: NVIDIA-L4, nvidia.com/gpu.count: "8", nvidia.com/gpu.memory: "23034"}, allocatable: {cpu: "16", memory: 64Gi, nvidia.com/gpu: "8"}}
`

// TestARealPodStartsOnceAdviceIsCarriedOut leaves two GPUs free on each of two nodes, so that a pod of three waits until a
// pod of a Deployment has moved to the other node.
func TestARealPodStartsOnceAdviceIsCarriedOut(t *testing.T) {
	t.Parallel()
	box := box.Start(t, twoNodes, sandbox.Options{})
	ctx := t.Context()
	list, err := box.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("%d nodes: %v", len(list.Items), err)
	}
	second := list.Items[1].Name
	// bareOn is a pod that no controller replaces, and that fits one node alone if one is named.
	bareOn := func(name, node, gpus string) *v1.Pod {
		p := pod(name, "", gpus, bare)
		p.Spec.Priority, p.UID, p.Status, p.CreationTimestamp = nil, "", v1.PodStatus{}, metav1.Time{}
		if node != "" {
			p.Spec.NodeSelector = map[string]string{v1.LabelHostname: node}
		}
		return p
	}
	deploy := func(name, gpus string) {
		t.Helper()
		template := pod(name, "", gpus)
		template.Spec.Priority = nil
		labels := map[string]string{"app": name}
		if _, err := box.Client.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template.Spec}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	running := func(want int) {
		t.Helper()
		box.Await(t, fmt.Sprintf("%d pods that run", want), func(ctx context.Context) (bool, error) {
			pods, err := box.Client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
			return err == nil && len(pods.Items) == want, err
		})
	}
	box.Create(t, bareOn("filler", second, "8"))
	running(1)
	deploy("large", "5")
	deploy("small", "1")
	running(3)
	box.Remove(t, "filler")
	deploy("larger", "6")
	running(3)
	box.Create(t, bareOn("p", "", "3"))
	box.Await(t, "a pod that fits no node", func(ctx context.Context) (bool, error) {
		p, err := box.Client.CoreV1().Pods("default").Get(ctx, "p", metav1.GetOptions{})
		return err == nil && len(p.Status.Conditions) > 0 && p.Status.Conditions[0].Reason == v1.PodReasonUnschedulable, err
	})
	collector, err := dump.NewCollector(box.Config)
	if err != nil {
		t.Fatal(err)
	}
	snapshot := func(ctx context.Context) (objects []runtime.Object, err error) {
		_, err = collector.Collect(ctx, func(obj runtime.Object) error {
			objects = append(objects, obj)
			return nil
		})
		return objects, err
	}
	objects, err := snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	configuration, err := schedulerconfig.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	advice, err := Cluster(ctx, Question{Configuration: configuration, Objects: objects, Now: time.Now(), Most: 5})
	if err != nil {
		t.Fatal(err)
	}
	_, plan := advice.FirstPlan()
	if plan == nil || plan.pods() != 1 {
		t.Fatalf("no plan that moves one pod: %+v", advice.Pending)
	}
	carrier := &Carrier{Client: box.Client, Within: 2 * time.Minute, Poll: 100 * time.Millisecond, Holds: func(ctx context.Context, rest *Plan) error {
		objects, err := snapshot(ctx)
		if err != nil {
			return err
		}
		return Holds(ctx, Question{Configuration: configuration, Objects: objects, Now: time.Now()}, rest)
	}, Say: func(text string) {
		t.Log(text)
		if strings.HasPrefix(text, "evicting ") {
			awaitCordon(t, box, func() *v1.Pod { return bareOn("probe", plan.Moves[0].Pods[0].From, "0") })
		}
	}}
	if err := carrier.Carry(ctx, plan); err != nil {
		t.Fatal(err)
	}
	p, err := box.Client.CoreV1().Pods("default").Get(ctx, "p", metav1.GetOptions{})
	if err != nil || p.Spec.NodeName == "" {
		t.Errorf("the pod has not started: %v", err)
	}
	nodes, err := box.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		if nodes.Items[i].Spec.Unschedulable {
			t.Errorf("node %s is left cordoned", nodes.Items[i].Name)
		}
	}
}

// awaitCordon waits until the scheduler knows that a node is cordoned, by probes that fit no other node. It hears of nodes
// and of pods by different watches, so a replacement for an evicted pod could be given the node that was cordoned before.
func awaitCordon(t *testing.T, cluster *box.Box, probe func() *v1.Pod) {
	t.Helper()
	cluster.Await(t, "a probe that is refused", func(ctx context.Context) (bool, error) {
		cluster.Create(t, probe())
		defer cluster.Remove(t, "probe")
		refused := false
		cluster.Await(t, "an answer to the probe", func(ctx context.Context) (bool, error) {
			p, err := cluster.Client.CoreV1().Pods("default").Get(ctx, "probe", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			refused = strings.Contains(box.Reason(p), "unschedulable")
			return refused || p.Spec.NodeName != "", nil
		})
		return refused, ctx.Err()
	})
}
