package release_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/test/harness/require"
)

// testQuota counts shares of a GPU as a ResourceQuota does, which sees the same requests as Kueue.
func testQuota(t *testing.T, w *guarded) {
	ctx := t.Context()
	const namespace = "quota"
	if _, err := w.Client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	amounts := func(pairs map[string]string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for name, amount := range pairs {
			list[corev1.ResourceName(name)] = resource.MustParse(amount)
		}
		return list
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "gpus"},
		Spec: corev1.ResourceQuotaSpec{Hard: amounts(map[string]string{
			"requests.nvidia.com/gpu": "3", "requests.nvidia.com/gpumem": "20000",
		})}}
	if _, err := w.Client.CoreV1().ResourceQuotas(namespace).Create(ctx, quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	used := func(ctx context.Context) (corev1.ResourceList, error) {
		got, err := w.Client.CoreV1().ResourceQuotas(namespace).Get(ctx, quota.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return got.Status.Used, nil
	}
	w.Await(t, "the quota to be counted", func(ctx context.Context) (bool, error) {
		list, err := used(ctx)
		return len(list) == len(quota.Spec.Hard), err
	})
	// What admits pods may still have the quota of before, by which it refuses all.
	w.Await(t, "a pod to be taken", func(ctx context.Context) (bool, error) {
		pod := podWith(nil)
		pod.Spec.Containers[0].Resources.Limits = amounts(map[string]string{"nvidia.com/gpu": "1"})
		_, err := w.user.CoreV1().Pods(namespace).Create(ctx, pod, dryRun)
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
	for _, test := range []struct {
		name                string
		annotations, limits map[string]string
		// refused is the resource that the quota has too little of, empty if the pod is taken.
		refused string
		// gpus and memory are what is used afterwards.
		gpus, memory string
	}{
		{"a whole GPU", nil, map[string]string{"nvidia.com/gpu": "1"}, "", "1", "0"},
		{"a share in HAMi's form", nil, map[string]string{"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8000"}, "", "2", "8k"},
		{"more memory than is left", nil, map[string]string{"nvidia.com/gpumem": "12001"}, "requests.nvidia.com/gpumem",
			"2", "8k"},
		{"more GPUs than are left", nil, map[string]string{"nvidia.com/gpu": "2"}, "requests.nvidia.com/gpu", "2", "8k"},
		{"a share in openb's form counts nothing", map[string]string{"alibabacloud.com/gpu-milli": "500"}, nil, "",
			"2", "8k"},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := podWith(test.annotations)
			pod.Spec.Containers[0].Resources.Limits = amounts(test.limits)
			_, err := w.user.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
			if test.refused == "" && err != nil || test.refused != "" &&
				(err == nil || !strings.Contains(err.Error(), test.refused)) {
				t.Errorf("got %v, want refused for %q", err, test.refused)
			}
			list, err := used(ctx)
			require.NoError(t, err)
			for name, want := range amounts(map[string]string{"requests.nvidia.com/gpu": test.gpus,
				"requests.nvidia.com/gpumem": test.memory}) {
				if got := list[name]; got.Cmp(want) != 0 {
					t.Errorf("%s: used %s, want %s", name, got.String(), want.String())
				}
			}
		})
	}
}
