package podview

import (
	"math/rand/v2"
	"strconv"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"
)

// randomPod has up to three containers, and each thing that counts for what a pod requests in about a third of the
// pods.
func randomPod(random *rand.Rand) *v1.Pod {
	rarely := func() bool { return random.IntN(3) == 0 }
	list := func() v1.ResourceList {
		names := []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, "nvidia.com/gpu"}
		var out v1.ResourceList
		for _, name := range names[:random.IntN(len(names)+1)] {
			if out == nil {
				out = v1.ResourceList{}
			}
			out[name] = resource.MustParse(strconv.Itoa(random.IntN(3)))
		}
		return out
	}
	always := v1.ContainerRestartPolicyAlways
	pod := &v1.Pod{}
	for i := range random.IntN(3) {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "c" + strconv.Itoa(i),
			Resources: v1.ResourceRequirements{Requests: list()}})
	}
	for i := range random.IntN(2) {
		c := v1.Container{Name: "i" + strconv.Itoa(i)}
		if rarely() {
			c.Resources.Requests = list()
		}
		if rarely() {
			c.RestartPolicy = &always
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	if rarely() {
		pod.Spec.Overhead = list()
	}
	if rarely() {
		pod.Spec.Resources = &v1.ResourceRequirements{Requests: list()}
	}
	status := func(c *v1.Container) v1.ContainerStatus {
		s := v1.ContainerStatus{Name: c.Name}
		if rarely() {
			s.AllocatedResources = c.Resources.Requests.DeepCopy()
		}
		if rarely() {
			s.Resources = &v1.ResourceRequirements{Requests: c.Resources.Requests.DeepCopy()}
		}
		if rarely() {
			s.AllocatedResources = list()
		}
		if rarely() {
			s.Resources = &v1.ResourceRequirements{Requests: list()}
		}
		return s
	}
	if random.IntN(2) == 0 {
		for i := range pod.Spec.Containers {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status(&pod.Spec.Containers[i]))
		}
		for i := range pod.Spec.InitContainers {
			pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, status(&pod.Spec.InitContainers[i]))
		}
	}
	if rarely() {
		pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodResizePending, Status: v1.ConditionTrue,
			Reason: v1.PodReasonInfeasible}}
	}
	return pod
}

func TestRequestsAreThoseThatKubernetesAddsUp(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	short := 0
	for range 20_000 {
		pod := randomPod(random)
		before := pod.DeepCopy()
		want := podresource.PodRequests(pod, podresource.PodResourcesOptions{})
		if got := Requests(pod); !equality.Semantic.DeepEqual(got, want) {
			t.Fatalf("a pod requests %v, want %v: %+v", got, want, pod)
		}
		want = podresource.PodRequests(pod, podresource.PodResourcesOptions{UseStatusResources: true})
		if got := RequestsNow(pod); !equality.Semantic.DeepEqual(got, want) {
			t.Fatalf("a pod requests %v now, want %v: %+v", got, want, pod)
		}
		if !equality.Semantic.DeepEqual(pod, before) {
			t.Fatalf("a pod was changed from %+v to %+v", before, pod)
		}
		if _, one := onlyRequests(pod); one {
			short++
		}
	}
	if short < 1000 {
		t.Errorf("only %d pods have one list", short)
	}
}

func TestRequestsOfOneListTakeNoMemory(t *testing.T) { //nolint:paralleltest // allocations are counted
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main",
		Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}}}}}
	if n := testing.AllocsPerRun(100, func() { Requests(pod); RequestsNow(pod) }); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
