package tools_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// podsEnd lets pods end, one of them by hand while its end is due.
func podsEnd(t *testing.T, shared *box.Box) {
	create := func(name string, delay time.Duration) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name,
				Annotations: map[string]string{"pod-complete.stage.kwok.x-k8s.io/delay": delay.String()}},
			Spec: corev1.PodSpec{SchedulerName: "berth-scheduler", RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		shared.Create(t, pod)
	}
	phase := func(name string, want ...corev1.PodPhase) {
		t.Helper()
		shared.AwaitPod(t, name, fmt.Sprint("to be ", want),
			func(pod *corev1.Pod) (bool, error) { return slices.Contains(want, pod.Status.Phase), nil })
	}
	create("ending", time.Second)
	// On a machine that stalls, a pod may end before it can be made to fail. The next one then has more time.
	name, delay := "failing", 5*time.Second
	for attempt := 1; ; attempt++ {
		create(name, delay)
		phase(name, corev1.PodRunning, corev1.PodSucceeded)
		_, err := shared.Client.CoreV1().Pods("default").Patch(t.Context(), name, types.JSONPatchType,
			[]byte(`[{"op":"test","path":"/status/phase","value":"Running"},{"op":"replace","path":"/status/phase","value":"Failed"}]`), metav1.PatchOptions{}, "status")
		if err == nil {
			break
		}
		if attempt == 4 {
			t.Fatal(err)
		}
		t.Logf("%s ended after %s: %v", name, delay, err)
		name, delay = fmt.Sprintf("failing-%d", attempt), 3*delay
	}
	create("ending-last", delay+3*time.Second)
	phase("ending", corev1.PodSucceeded)
	// By then the time of the failed one is over, too.
	phase("ending-last", corev1.PodSucceeded)
	phase(name, corev1.PodFailed)
}

// deletedPodEnds deletes a pod that a finalizer keeps: what it held is free before the finalizer goes.
func deletedPodEnds(t *testing.T, shared *box.Box) {
	api := shared.Client.CoreV1().Pods("default")
	gpus := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")}
	shared.Create(t, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "kept", Finalizers: []string{"example.com/keep"}},
		Spec: corev1.PodSpec{SchedulerName: "berth-scheduler", Containers: []corev1.Container{
			{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Limits: gpus}},
		}},
	})
	shared.AwaitPod(t, "kept", "to run",
		func(pod *corev1.Pod) (bool, error) { return pod.Status.Phase == corev1.PodRunning, nil })
	require.NoError(t, api.Delete(t.Context(), "kept", metav1.DeleteOptions{}))
	shared.AwaitPod(t, "kept", "to end", func(pod *corev1.Pod) (bool, error) {
		return pod.Status.Phase == corev1.PodFailed,
			nil
	})
	free := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := api.Patch(t.Context(), "kept", types.MergePatchType, free, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	box.Await(t, "the pod to go", func(ctx context.Context) (bool, error) {
		_, err := api.Get(ctx, "kept", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}
