package main

import (
	"context"
	"os"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

func TestTheImageOfTheNodeAgentAddsOneFileToItsBase(t *testing.T) {
	t.Parallel()
	b := box.NewBuilder(t)
	if got, want := b.Files(t, b.Container(t, "node-agent")), "[/berth-node-agent]"; got != want {
		t.Errorf("files of the image on an empty base: %s, want %s", got, want)
	}
}

func TestTheImageHasWhatTheSchedulerNeedsAndNothingElse(t *testing.T) {
	t.Parallel()
	for from, container := range map[string]func(box.Builder, *testing.T, string) string{
		"of the Dockerfile": box.Builder.Container, "of the archive": box.Builder.Unpacked,
	} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			b := box.NewBuilder(t)
			b.Check(t, container(b, t, "scheduler"), "scheduler")
		})
	}
}

func TestTheImageSchedulesOnARealControlPlane(t *testing.T) {
	t.Parallel()
	b := box.NewBuilder(t)
	container := b.Container(t, "scheduler")
	nodes := "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: '8', memory: 16Gi, pods: '10'}}\n"
	box := box.Start(t, nodes, sandbox.Options{NoKubelet: true, NoScheduler: true})

	// A time zone proves that the image has them; the system's own are not in it.
	config := `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: /config/kubeconfig}
profiles:
  - schedulerName: berth-scheduler
    plugins:
      queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
      multiPoint: {enabled: [{name: Coscheduling}, {name: CostOptimized, weight: 20}]}
    pluginConfig:
      - name: CostOptimized
        args: {windows: [{name: night, from: "22:00", to: "06:00", timeZone: Europe/Berlin}]}
`
	kubeconfig, err := os.ReadFile(box.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	b.Start(t, container, map[string][]byte{"kubeconfig": kubeconfig, "config.yaml": []byte(config)},
		"/berth-scheduler", "--config=/config/config.yaml", "--secure-port=0")
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: metav1.NamespaceDefault},
		Spec: v1.PodSpec{SchedulerName: "berth-scheduler", Containers: []v1.Container{{
			Name: "c", Image: "none", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}},
		}}},
	}
	pods := box.Client.CoreV1().Pods(metav1.NamespaceDefault)
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	box.Await(t, "the scheduler of the image to bind a pod", func(ctx context.Context) (bool, error) {
		got, err := pods.Get(ctx, "p", metav1.GetOptions{})
		return err == nil && got.Spec.NodeName == "n1", err
	})
}
