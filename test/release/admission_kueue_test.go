package release_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// exampleWith is the one block of YAML on the page on Kueue that contains the text.
func exampleWith(t *testing.T, text string) []byte {
	t.Helper()
	const page = "docs/kueue.md"
	content, err := os.ReadFile(filepath.Join(box.Root(t), page))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, after := range strings.Split(string(content), "\n```yaml\n")[1:] {
		if block, _, closed := strings.Cut(after, "\n```"); closed && strings.Contains(block, text) {
			found = append(found, block)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d blocks of YAML with %q, want 1", page, len(found), text)
	}
	return []byte(found[0])
}

// The quota of the page admits its Job, and the queue leads to it.
func TestQuotaOfTheKueuePage(t *testing.T) {
	t.Parallel()
	var job batchv1.Job
	if err := yaml.UnmarshalStrict(exampleWith(t, "kind: Job"), &job); err != nil {
		t.Fatal(err)
	}
	var queues struct {
		Spec struct {
			ClusterQueue   string
			ResourceGroups []struct {
				Flavors []struct {
					Name      string
					Resources []struct {
						Name         corev1.ResourceName
						NominalQuota resource.Quantity
					}
				}
			}
		}
	}
	parts := strings.Split(string(exampleWith(t, "kind: ClusterQueue")), "\n---\n")
	for _, part := range parts {
		if err := yaml.Unmarshal([]byte(part), &queues); err != nil {
			t.Fatal(err)
		}
	}
	if len(parts) != 3 || queues.Spec.ClusterQueue != job.Labels["kueue.x-k8s.io/queue-name"] {
		t.Errorf("the page has %d objects of Kueue, and its LocalQueue leads to %q", len(parts), queues.Spec.ClusterQueue)
	}
	quota := corev1.ResourceList{}
	for _, r := range queues.Spec.ResourceGroups[0].Flavors[0].Resources {
		quota[r.Name] = r.NominalQuota
	}
	resources := job.Spec.Template.Spec.Containers[0].Resources
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "nvidia.com/gpu"} {
		each, ok := resources.Requests[name]
		if !ok {
			each = resources.Limits[name]
		}
		each.Mul(int64(*job.Spec.Parallelism))
		if has := quota[name]; each.IsZero() || each.Cmp(has) > 0 {
			t.Errorf("the Job asks for %s of %s, and the quota is %s", &each, name, &has)
		}
	}
}

func testKueueExample(t *testing.T, w *guarded) {
	ctx := t.Context()
	const said = "shares of a GPU are asked for by nvidia.com/gpumem here, so that quotas count them"
	files := fstest.MapFS{
		"policy.yaml": {Data: exampleWith(t, "name: shares-are-resources")},
		"job.yaml":    {Data: exampleWith(t, "kind: Job")},
	}
	for _, file := range []string{"policy.yaml", "job.yaml"} {
		if _, err := sandbox.CreateFiles(ctx, w.Config, "default", files, file); err != nil {
			t.Fatalf("creating what the page shows: %v", err)
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
	w.Await(t, "the policy of the page", func(ctx context.Context) (bool, error) {
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
			if got := create(ctx, test.namespace, test.annotations, test.limits); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
