package release_test

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/assert"
)

func testKueueExample(t *testing.T, w *guarded) {
	ctx := t.Context()
	const said = "shares of a GPU are asked for by nvidia.com/gpumem here, so that quotas count them"
	for _, file := range []string{"kueue/shares-are-resources.yaml", "examples/18-kueue/job.yaml"} {
		if _, err := sandbox.CreateFiles(ctx, w.Config, "default", os.DirFS(manifests(t)), file); err != nil {
			t.Fatalf("creating %s: %v", file, err)
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "managed",
		Labels: map[string]string{"kueue-managed": ""}}}
	if _, err := w.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	create := func(ctx context.Context, namespace string, annotations map[string]string,
		limits corev1.ResourceList) string {
		pod := podWith(annotations)
		pod.Spec.Containers[0].Resources.Limits = limits
		_, err := w.user.CoreV1().Pods(namespace).Create(ctx, pod, dryRun)
		return denial(err)
	}
	milli := map[string]string{"alibabacloud.com/gpu-milli": "300"}
	w.Await(t, "the policy", func(ctx context.Context) (bool, error) {
		return create(ctx, "managed", milli, nil) == said, nil
	})
	memory := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1"),
		"nvidia.com/gpumem": resource.MustParse("8000")}
	for _, test := range []struct {
		name, namespace string
		annotations     map[string]string
		limits          corev1.ResourceList
		want            string
	}{
		{"openb's number of GPUs", "managed", map[string]string{"alibabacloud.com/gpu-count": "1"}, nil, said},
		{"KAI's fraction", "managed", map[string]string{"gpu-fraction": "0.5"}, nil, said},
		{"KAI's memory", "managed", map[string]string{"gpu-memory": "2000"}, nil, said},
		{"a share in HAMi's form", "managed", nil, memory, ""},
		{"another annotation", "managed", map[string]string{"example.com/note": "x"}, nil, ""},
		{"a namespace without the label", "default", milli, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, "", test.want, create(ctx, test.namespace, test.annotations, test.limits))
		})
	}
}
