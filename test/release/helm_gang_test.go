package release_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// TestTheTestOfTheChartStartsAGang has the scheduler run with the account and the configuration that the chart has
// installed. The test stands in for the kubelets.
func TestTheTestOfTheChartStartsAGang(t *testing.T) {
	t.Parallel()
	cluster := box.Start(t, `shapes: [{name: one, count: 1, allocatable: {cpu: "8", memory: 16Gi}}]`,
		sandbox.Options{Bare: true, NoKubelet: true, Controllers: []string{"job-controller", "serviceaccount-controller"}})
	r := newRelease(t, cluster)
	r.helm(t, "install", "berth", r.chart)
	config := strings.Replace(r.config(t), "\nclientConnection:\n", "\nclientConnection:\n  kubeconfig: "+
		cluster.KubeconfigOf(t, "berth-scheduler")+"\n", 1)
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	scheduler := box.Command(t, "berth-scheduler", "--config="+file, "--secure-port=0")

	var out strings.Builder
	run := exec.CommandContext(t.Context(), r.binary, "test", "berth", "--namespace", "kube-system", "--kubeconfig",
		cluster.Kubeconfig())
	run.Env, run.Stdout, run.Stderr = r.env, &out, &out
	require.NoError(t, run.Start())
	pods := cluster.Client.CoreV1().Pods("kube-system")
	cluster.Await(t, "two pods to be bound", func(ctx context.Context) (bool, error) {
		if err := scheduler.Running(); err != nil {
			return false, err
		}
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=berth-test"})
		if err != nil || len(list.Items) != 2 {
			return false, err
		}
		for i := range list.Items {
			if list.Items[i].Spec.NodeName == "" {
				return false, nil
			}
		}
		// It is there as long as its pods are.
		group, err := cluster.Dynamic.Resource(podGroups).Namespace("kube-system").Get(ctx, "berth-test", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		if least, _, _ := unstructured.NestedInt64(group.Object, "spec", "minMember"); least != 2 {
			t.Errorf("the PodGroup of the test has minMember %d, want 2", least)
		}
		for i := range list.Items {
			list.Items[i].Status.Phase = corev1.PodSucceeded
			if _, err := pods.UpdateStatus(ctx, &list.Items[i], metav1.UpdateOptions{}); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	if err := run.Wait(); err != nil || !strings.Contains(out.String(), "Succeeded") {
		t.Errorf("helm test: %v\n%s", err, out.String())
	}
}
