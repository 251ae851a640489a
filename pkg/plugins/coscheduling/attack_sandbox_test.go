package coscheduling_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/sandbox"
	realbox "berth.dev/berth/test/harness/box"
)

// attackFleet has room for every gang of the attacks.
const attackFleet = `shapes:
- {name: node, count: 10, allocatable: {cpu: "64", memory: 256Gi, pods: "500"}}
`

// attack is a control plane with two tenants.
type attack struct {
	*realbox.Box
	t       *testing.T
	dynamic dynamic.Interface
}

var podGroupResource = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

func newAttack(t *testing.T, config string) *attack {
	t.Helper()
	a := &attack{Box: realbox.Start(t, attackFleet, sandbox.Options{SchedulerConfig: config, NoKubelet: true}), t: t}
	var err error
	if a.dynamic, err = dynamic.NewForConfig(a.Config); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mallory", "alice"} {
		if _, err := a.Client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// member creates a pod of a gang by labels, or of none without a gang.
func (a *attack) member(namespace, name, gang string, minimum int, change func(*v1.Pod)) {
	a.t.Helper()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}},
		Spec: v1.PodSpec{SchedulerName: "gang-scheduler", AutomountServiceAccountToken: ptr.To(false), Containers: []v1.Container{{Name: "c", Image: "c",
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("10m")}}}}}}
	if gang != "" {
		pod.Labels["pod-group.scheduling.sigs.k8s.io/name"] = gang
		pod.Labels["pod-group.scheduling.sigs.k8s.io/min-available"] = fmt.Sprint(minimum)
	}
	if change != nil {
		change(pod)
	}
	if _, err := a.Client.CoreV1().Pods(namespace).Create(a.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

// awaitBound waits until so many pods of the namespace have a node.
func (a *attack) awaitBound(namespace string, n int) {
	a.t.Helper()
	a.Await(a.t, fmt.Sprintf("%d bound pods in %s", n, namespace), func(ctx context.Context) (bool, error) {
		pods, err := a.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
		return err == nil && len(pods.Items) == n, err
	})
}

// countPlans fails while the scheduler is being started again.
func (a *attack) countPlans(ctx context.Context) (int, error) {
	return (&world{sandbox: a.Sandbox}).countPlans(ctx)
}

func (a *attack) plans() int {
	a.t.Helper()
	n, err := a.countPlans(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	return n
}

// nobody is an affinity that no node satisfies, which only a scheduling cycle finds out.
func nobody(pod *v1.Pod) {
	pod.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
		TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/nobody": "here"}}}}}}
}

// TestOneGangDoesNotStopScheduling has a tenant create a gang of members that all differ, and edit them as fast as it can.
//
//nolint:paralleltest,tparallel // the parts of the story follow each other on one control plane
func TestOneGangDoesNotStopScheduling(t *testing.T) {
	t.Parallel()
	a := newAttack(t, "testdata/scheduler-config.yaml")
	const size = 300
	distinct := func(i int) func(*v1.Pod) {
		return func(pod *v1.Pod) {
			pod.Annotations = map[string]string{"example.com/n": fmt.Sprint(i)}
			if i == size-1 {
				nobody(pod)
			}
		}
	}
	for i := range size {
		a.member("mallory", fmt.Sprintf("m-%d", i), "big", size, distinct(i))
	}
	a.member("alice", "first", "", 0, nil)
	a.awaitBound("alice", 1)
	a.Await(t, "the first plans", func(ctx context.Context) (bool, error) {
		n, err := a.countPlans(ctx)
		return err == nil && n > 0, nil
	})

	t.Run("edits do not end the pause between two plans", func(t *testing.T) {
		before, began, edits := a.plans(), time.Now(), 0
		for ; time.Since(began) < 10*time.Second; edits++ {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/edit":"%d"}}}`, edits)
			if _, err := a.Client.CoreV1().Pods("mallory").Patch(t.Context(), fmt.Sprintf("m-%d", edits%size), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		// Pauses of 1, 2, 4 and 8 seconds, and one plan more that began before.
		if made := a.plans() - before; made > 5 {
			t.Errorf("%d plans were made during %d edits in %s, want no more than 5", made, edits, time.Since(began))
		}
	})
	t.Run("another tenant's gang starts meanwhile", func(t *testing.T) {
		for i := range 4 {
			a.member("alice", fmt.Sprintf("w-%d", i), "small", 4, nil)
		}
		a.awaitBound("alice", 5)
	})
	t.Run("gangs with a minimum that never comes are not planned", func(t *testing.T) {
		before := a.plans()
		for g := range 20 {
			for i := range 3 {
				a.member("mallory", fmt.Sprintf("few-%d-%d", g, i), fmt.Sprintf("few-%d", g), 10_000+90_000*(g%2), distinct(i))
			}
		}
		a.member("alice", "second", "", 0, nil)
		a.awaitBound("alice", 6)
		// The first gang may have had its turn meanwhile.
		if made := a.plans() - before; made >= 20 {
			t.Errorf("%d plans were made for 20 gangs that are not complete", made)
		}
	})
	t.Run("a large gang of distinct members starts", func(t *testing.T) {
		for i := range size {
			a.member("mallory", fmt.Sprintf("ok-%d", i), "fits", size, distinct(i-1))
		}
		a.awaitBound("mallory", size)
	})
	t.Run("a large gang of members with a claim each starts", a.testClaims)
}
