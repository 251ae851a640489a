package gpuaware

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// impossiblePods ask for more GPUs than any node has.
	impossiblePods = 900
	// arrivals are the pods whose placement they are meant to spoil: more than the nodes have CPUs for.
	arrivals = 90
	// The nodes of the shape "t4", and the least CPUs that a pod with a GPU asks for.
	t4Nodes, t4CPUs, t4GPUs, leastCPUs = 16, 32, 4, 6
)

// testMix places the same small pods with and without pods that can never run, each time by a scheduler that knows nothing yet.
func (a *attack) testMix(t *testing.T) {
	a.createNamespace(t, "mallory")
	strandedOf := func(name string, attacked bool) int {
		a.KillScheduler(t)
		if attacked {
			for i := range impossiblePods {
				a.createIn(t, "mallory", podObject(fmt.Sprintf("impossible-%d", i), strs{"nvidia.com/gpu": "8"}, nil))
			}
			a.awaitDecided(t, "mallory", impossiblePods)
		}
		random := rand.New(rand.NewPCG(7, 7))
		for i := range arrivals {
			requests := []strs{{"cpu": "4"}, {"cpu": "6", "nvidia.com/gpu": "1"}, {"cpu": "8", "nvidia.com/gpu": "2"}}[[]int{0, 0, 0, 0, 1, 1, 1, 1, 1, 2}[random.IntN(10)]]
			pod := podObject(fmt.Sprintf("%s-%d", name, i), requests, nil)
			pod.Spec.NodeSelector = strs{"attacked": "mix"}
			a.createIn(t, "default", pod)
			a.awaitDecided(t, "default", i+1)
		}
		stranded := a.stranded(t)
		a.deleteAll(t, "default")
		a.deleteAll(t, "mallory")
		return stranded
	}
	a.deleteAll(t, "default")
	// Two without, because equal scores are decided by chance.
	clean := []int{strandedOf("clean", false), strandedOf("again", false)}
	attacked := strandedOf("attacked", true)
	t.Logf("of %d GPUs %v are stranded, with %d impossible pods %d", t4Nodes*t4GPUs, clean, impossiblePods, attacked)
	if most := max(clean[0], clean[1]) + t4GPUs; attacked > most {
		t.Errorf("%d GPUs are stranded, want no more than the %d of one node more than without the attack", attacked, most)
	}
}

// stranded counts the GPUs that are free on nodes without the CPUs for them.
func (a *attack) stranded(t *testing.T) int {
	t.Helper()
	list, err := a.Client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cpus, gpus := map[string]int{}, map[string]int{}
	for _, pod := range list.Items {
		requests := pod.Spec.Containers[0].Resources.Requests
		amount := requests["nvidia.com/gpu"]
		cpus[pod.Spec.NodeName] += int(requests.Cpu().Value())
		gpus[pod.Spec.NodeName] += int(amount.Value())
	}
	stranded := 0
	for i := range t4Nodes {
		node := fmt.Sprintf("t4-%d", i)
		stranded += max(0, t4GPUs-gpus[node]-(t4CPUs-cpus[node])/leastCPUs)
	}
	return stranded
}

func (a *attack) createNamespace(t *testing.T, name string) {
	t.Helper()
	if _, err := a.Client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.Await(t, "the service account of "+name, func(ctx context.Context) (bool, error) {
		_, err := a.Client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
}

func (a *attack) createIn(t *testing.T, namespace string, pod *v1.Pod) {
	t.Helper()
	pod.UID, pod.Namespace = "", namespace
	pod.Spec.Containers[0].Resources.Limits = pod.Spec.Containers[0].Resources.Requests.DeepCopy()
	if _, err := a.Client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitDecided waits until so many pods of the namespace have a node or a reason why not.
func (a *attack) awaitDecided(t *testing.T, namespace string, n int) {
	t.Helper()
	a.Await(t, fmt.Sprintf("%d pods of %s to be decided on", n, namespace), func(ctx context.Context) (bool, error) {
		list, err := a.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		decided := 0
		for i := range list.Items {
			if list.Items[i].Spec.NodeName != "" || reasonOf(&list.Items[i]) != "" {
				decided++
			}
		}
		return decided == n, err
	})
}

// deleteAll deletes the pods of a namespace at once, and waits until they are gone.
func (a *attack) deleteAll(t *testing.T, namespace string) {
	t.Helper()
	pods := a.Client.CoreV1().Pods(namespace)
	if err := pods.DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	a.Await(t, "the pods of "+namespace+" to be gone", func(ctx context.Context) (bool, error) {
		list, err := pods.List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, err
	})
}
