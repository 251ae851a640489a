package tools_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

const threeNodes = `shapes: [{name: node, count: 3, labels: {nvidia.com/gpu.product: NVIDIA-L4}, allocatable: {cpu: "8", memory: 32Gi, nvidia.com/gpu: "4"}}]`

// TestOnAWholeCluster has the tests that need the scheduler of the control plane, its controllers and kubelets.
//
//nolint:tparallel // what ends the scheduler comes after what needs it
func TestOnAWholeCluster(t *testing.T) {
	t.Parallel()
	shared := box.Start(t, threeNodes, sandbox.Options{})
	box.SideBySide(t, map[string]func(*testing.T){
		"the sandbox is a cluster of its own":                   func(t *testing.T) { clusterOfItsOwn(t, shared) },
		"the scheduler follows what the node's agent publishes": func(t *testing.T) { schedulerFollowsAgent(t, shared) },
		"a pod ends as it is told, and stays as it ended":       func(t *testing.T) { podsEnd(t, shared) },
		"workloads are listed, also for a tenant":               func(t *testing.T) { workloadsAreListed(t, shared) },
		"a deleted pod ends, although a finalizer keeps it":     func(t *testing.T) { deletedPodEnds(t, shared) },
	})
	t.Run("a foreign definition is noticed", func(t *testing.T) { foreignDefinitionIsNoticed(t, shared) })
	t.Run("a killed scheduler comes back", func(t *testing.T) {
		shared.KillScheduler(t)
		runPod(t, shared, "after-the-kill", "berth-scheduler")
	})
}

// runPod creates a pod for a profile and waits until it runs.
func runPod(t *testing.T, shared *box.Box, name, profile string) {
	t.Helper()
	shared.Create(t, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{SchedulerName: profile, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	})
	shared.AwaitPod(t, name, "to run", func(pod *corev1.Pod) (bool, error) {
		return pod.Status.Phase == corev1.PodRunning,
			nil
	})
}

func clusterOfItsOwn(t *testing.T, shared *box.Box) {
	for i := range 3 {
		if _, err := shared.Client.CoreV1().Nodes().Get(t.Context(), fmt.Sprint("node-", i),
			metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	for _, profile := range []string{"gpu-aware-scheduler", "cost-optimized-scheduler", "gang-scheduler",
		"berth-scheduler"} {
		runPod(t, shared, profile, profile)
	}
	t.Run("no file can be read by others", func(t *testing.T) { nothingIsOpen(t, shared.Sandbox) })
	t.Run("no secret is in a log or in a dump", func(t *testing.T) { nothingIsTold(t, shared) })
	t.Run("etcd serves watches on a port that HTTP does not share", func(t *testing.T) {
		log, err := os.ReadFile(filepath.Join(shared.Dir(), "logs", "etcd.log"))
		if err != nil || strings.Contains(string(log), "http and grpc server on single port") {
			t.Errorf("error %v; etcd says:\n%s", err, log)
		}
	})
	t.Run("the scheduler has its own rights and no others", func(t *testing.T) {
		config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(shared.Dir(), "scheduler.kubeconfig"))
		require.NoError(t, err)
		scheduler, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		for _, ask := range []struct {
			verb, resource, subresource string
			want                        bool
		}{{"create", "pods", "binding", true}, {"list", "secrets", "", false}, {"delete", "nodes", "", false}} {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: ask.verb, Resource: ask.resource,
					Subresource: ask.subresource, Namespace: "default"},
			}}
			got, err := scheduler.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review,
				metav1.CreateOptions{})
			require.NoError(t, err)
			if got.Status.Allowed != ask.want {
				t.Errorf("%s %s/%s: allowed is %v, want %v", ask.verb, ask.resource, ask.subresource, got.Status.Allowed, ask.want)
			}
		}
	})
	t.Run("a namespace and what is in it can be deleted", func(t *testing.T) {
		if _, err := shared.Client.CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "short-lived"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		require.NoError(t, shared.Client.CoreV1().Namespaces().Delete(t.Context(), "short-lived", metav1.DeleteOptions{}))
		shared.Await(t, "the namespace to go", func(ctx context.Context) (bool, error) {
			_, err := shared.Client.CoreV1().Namespaces().Get(ctx, "short-lived", metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
	})
	t.Run("a second one in the same folder is refused and harms nothing", func(t *testing.T) {
		_, err := sandbox.Start(t.Context(), sandbox.Options{Dir: shared.Dir()}, nil)
		if !errors.Is(err, sandbox.ErrUp) || !strings.Contains(err.Error(), shared.Kubeconfig()) {
			t.Errorf("got error %v, want ErrUp with the kubeconfig's path", err)
		}
		if _, err := shared.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("the first is gone: %v", err)
		}
	})
}
