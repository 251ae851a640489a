package subject

import (
	"strings"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/test/harness/require"
)

func TestAManifestBecomesWhatTheServerWouldMakeOfIt(t *testing.T) {
	t.Parallel()
	m, err := ReadManifest(strings.NewReader(`
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec:
  parallelism: 3
  template:
    metadata: {labels: {scheduling.x-k8s.io/pod-group: g}}
    spec:
      priorityClassName: high
      containers: [{name: c, image: i, resources: {limits: {cpu: 2}}}]
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: g}
spec: {minMember: 3}
`), "f", "ns")
	require.NoError(t, err)
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 7}
	if _, err := m.onto(nil); err == nil || !strings.Contains(err.Error(), `no PriorityClass "high"`) {
		t.Errorf("got error %v, want one about the priority class", err)
	}
	objects, err := m.onto([]runtime.Object{high})
	require.NoError(t, err)
	if len(objects) != 6 || len(m.Pods) != 3 {
		t.Fatalf("got %d objects and %d pods, want 6 and 3", len(objects), len(m.Pods))
	}
	p := m.Pods[2]
	cpu := p.Spec.Containers[0].Resources.Requests["cpu"]
	if p.Name != "j-2" || p.Namespace != "ns" || *p.Spec.Priority != 7 || cpu.String() != "2" ||
		p.Spec.SchedulerName != "default-scheduler" {
		t.Errorf("got pod %s/%s with priority %d, %s CPU, scheduler %s", p.Namespace, p.Name, *p.Spec.Priority, &cpu,
			p.Spec.SchedulerName)
	}
	for name, text := range map[string]string{
		"there is no pod in it": "apiVersion: v1\nkind: Namespace\nmetadata: {name: nn}\n",
		"unknown field":         "apiVersion: v1\nkind: Pod\nmetadata: {name: nn}\nspecs: {}\n",
		"f:1: ":                 "a: [", "f:1: this is not an object": "words",
		"f:2: Pod without a name": "# a comment\napiVersion: v1\nkind: Pod\n",
		"f:3: ":                   "apiVersion: v1\nkind: Pod\nkind: Pod\n",
	} {
		if _, err := ReadManifest(strings.NewReader(text), "f", "ns"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: got error %v, want %q in it", text, err, name)
		}
	}
}

func FuzzReadManifest(f *testing.F) {
	f.
		Add("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n" +
			"spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}\n")
	f.Add("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n" +
		"spec: {parallelism: 2, template: {metadata: {labels: {scheduling.x-k8s.io/pod-group: g}}}}\n---\na: &a [*a]\n")
	f.Add(`{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ReadManifest(strings.NewReader(text), "f", "ns")
		if err == nil {
			_, err = m.onto(nil)
			if err == nil && len(m.Pods) == 0 {
				t.Error("no pod and no error")
			}
			return
		}
		if !strings.HasPrefix(err.Error(), "f:") || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is not a line that begins with the file: %q", err)
		}
	})
}
