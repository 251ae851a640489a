package rules_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/test/harness/require"
	"berth.dev/berth/test/harness/rules"
)

var podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

func newServer(t *testing.T) (kubernetes.Interface, dynamic.Interface) {
	t.Helper()
	r, err := rules.New("../../../manifests/crd")
	require.NoError(t, err)
	api := memapi.New()
	api.Register(podGroups, "PodGroup", true)
	api.Rules = r
	client, err := kubernetes.NewForConfig(api.RESTConfig())
	require.NoError(t, err)
	custom, err := dynamic.NewForConfig(api.RESTConfig())
	require.NoError(t, err)
	return client, custom
}

func pod(change func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}
	change(p)
	return p
}

func TestAPodIsCompletedAndCheckedAsByKubeAPIServer(t *testing.T) {
	t.Parallel()
	client, _ := newServer(t)
	pods := client.CoreV1().Pods("default")
	if _, err := client.SchedulingV1().PriorityClasses().Create(t.Context(),
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 7},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	made, err := pods.Create(t.Context(), pod(func(p *v1.Pod) {
		p.Spec.PriorityClassName = "high"
		p.Status.Phase = v1.PodRunning // a status is not created
	}), metav1.CreateOptions{})
	require.NoError(t, err)
	if made.Status.Phase != v1.PodPending || made.Spec.RestartPolicy != v1.RestartPolicyAlways ||
		ptr.Deref(made.Spec.Priority, 0) != 7 {
		t.Errorf("the pod is %s, restarts %s, has priority %d", made.Status.Phase, made.Spec.RestartPolicy,
			ptr.Deref(made.Spec.Priority, 0))
	}
	made.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: {}}
	if _, err := pods.Update(t.Context(), made, metav1.UpdateOptions{}); err == nil {
		t.Error("requests of a pod were changed")
	}
	for name, change := range map[string]func(*v1.Pod){
		"no PriorityClass with name none": func(p *v1.Pod) { p.Spec.PriorityClassName = "none" },
		"spec.containers: Required value": func(p *v1.Pod) { p.Spec.Containers = nil },
		"a lowercase RFC 1123":            func(p *v1.Pod) { p.Name = "P" },
	} {
		p := pod(change)
		if p.Name == "p" {
			p.Name = "q"
		}
		if _, err := pods.Create(t.Context(), p, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one that says %q", err, name)
		}
	}
}

func TestDeletionsTakeTheirTime(t *testing.T) {
	t.Parallel()
	client, _ := newServer(t)
	pods := client.CoreV1().Pods("default")
	for _, tc := range []struct {
		name   string
		change func(*v1.Pod)
		stays  bool
	}{
		{"a pod without a node goes at once", func(*v1.Pod) {}, false},
		{"a pod on a node has its grace period", func(p *v1.Pod) { p.Spec.NodeName = "n" }, true},
		{"a pod with a finalizer waits for it", func(p *v1.Pod) { p.Finalizers = []string{"example.dev/wait"} }, true},
	} {
		made, err := pods.Create(t.Context(), pod(tc.change), metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{}))
		now, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
		if stays := err == nil; stays != tc.stays || stays && now.DeletionTimestamp == nil {
			t.Errorf("%s: it stays: %t, marked: %t", tc.name, stays, stays && now.DeletionTimestamp != nil)
		}
		if !tc.stays {
			continue
		}
		if len(made.Finalizers) > 0 {
			patch := []byte(`{"metadata":{"finalizers":null}}`)
			if _, err := pods.Patch(t.Context(), "p", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		} else if err := pods.Delete(t.Context(), "p",
			metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			t.Fatal(err)
		}
		if _, err := pods.Get(t.Context(), "p", metav1.GetOptions{}); err == nil {
			t.Errorf("%s: it is still there", tc.name)
		}
	}
}

func TestAStatusIsWrittenApart(t *testing.T) {
	t.Parallel()
	client, custom := newServer(t)
	jobs := client.BatchV1().Jobs("default")
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j"}, Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](1),
		Template: v1.PodTemplateSpec{Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyNever,
			Containers: []v1.Container{{Name: "c", Image: "i"}}}}}}
	made, err := jobs.Create(t.Context(), job, metav1.CreateOptions{})
	require.NoError(t, err)
	made.Status.Active, made.Spec.Parallelism = 1, ptr.To[int32](5)
	if made, err = jobs.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if made.Status.Active != 1 || *made.Spec.Parallelism != 1 {
		t.Errorf("a write of the status left active %d and parallelism %d, want 1 and 1", made.Status.Active,
			*made.Spec.Parallelism)
	}
	groups := custom.Resource(podGroups).Namespace("default")
	group := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1",
		"kind":     "PodGroup",
		"metadata": map[string]any{"name": "g"}, "spec": map[string]any{"minMember": int64(2), "unknown": "x"},
		"status": map[string]any{"phase": "Running"}}}
	kept, err := groups.Create(t.Context(), group, metav1.CreateOptions{})
	require.NoError(t, err)
	if _, has, _ := unstructured.NestedString(kept.Object, "spec", "unknown"); has || kept.Object["status"] != nil {
		t.Errorf("kept %v, want no unknown field and no status", kept.Object)
	}
	group.SetName("h")
	require.NoError(t, unstructured.SetNestedField(group.Object, int64(-1), "spec", "minMember"))
	if _, err := groups.Create(t.Context(), group, metav1.CreateOptions{}); err == nil {
		t.Error("a PodGroup with a negative minimum was taken")
	}
}
