package gpuaware

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/box"
)

const (
	// impossiblePods want nodes that there are none: each all CPUs of one for a single GPU.
	impossiblePods = 900
	// arrivals are the pods that run.
	arrivals = 90
	// fewStranded is a quarter of the GPUs. It is far above what the work alone strands, which differs from run to run, as the lives
	// of the pods are not the same to the second, and far below the three of four that the impossible pods would strand.
	fewStranded = 17
)

// testMix runs the same small pods with and without pods that can never run, each time by a scheduler that knows nothing yet. What
// it expects to strand on the same empty nodes says for which work it places pods. Where pods go says less: the nodes fill up to the
// same few GPUs under either mix.
func (a *attack) testMix(t *testing.T) {
	a.createNamespace(t, "mallory")
	// To list hundreds of pods again and again would take the API server longer than what is tested.
	factory := informers.NewSharedInformerFactory(a.Client, 0)
	pods := factory.Core().V1().Pods().Lister()
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSyncWithContext(t.Context())
	a.deleteAll(t, "default", pods.Pods("default"))
	strandedAfter := func(name string, impossible int) float64 {
		a.KillScheduler(t)
		for i := range impossible {
			pod := podObject(fmt.Sprintf("impossible-%d", i), strs{"cpu": "32", "nvidia.com/gpu": "1"}, nil)
			pod.Spec.NodeSelector = strs{"attacked": "never"}
			a.createIn(t, "mallory", pod)
		}
		a.awaitDecided(t, pods.Pods("mallory"), impossible)
		random := rand.New(rand.NewPCG(7, 7))
		for i := range arrivals {
			requests := []strs{{"cpu": "4"}, {"cpu": "6", "nvidia.com/gpu": "1"}, {"cpu": "8", "nvidia.com/gpu": "2"}}[[]int{0, 0, 0, 0, 1, 1, 1, 1, 1, 2}[random.IntN(10)]]
			pod := podObject(fmt.Sprintf("%s-%d", name, i), requests, nil)
			pod.Spec.NodeSelector = strs{"attacked": "mix"}
			a.createIn(t, "default", pod)
			a.awaitDecided(t, pods.Pods("default"), i+1)
		}
		a.deleteAll(t, "default", pods.Pods("default"))
		a.deleteAll(t, "mallory", pods.Pods("mallory"))
		// Each node is counted by the mix of the moment at which its last pod goes.
		stranded := 0.0
		a.Await(t, "the scheduler to have heard that the nodes are empty", func(ctx context.Context) (bool, error) {
			page, failed := a.schedulerPage(ctx, "/metrics", nil)
			allocated, unknown := gauge(page, "berth_gpu_allocated")
			var err error
			stranded, err = gauge(page, "berth_gpu_stranded")
			// It may be being started again.
			return errors.Join(failed, unknown, err) == nil && allocated == 0, nil
		})
		return stranded
	}
	clean := strandedAfter("clean", 0)
	attacked := strandedAfter("attacked", impossiblePods)
	t.Logf("%.1f GPUs are expected to be stranded, with %d impossible pods %.1f", clean, impossiblePods, attacked)
	if max(clean, attacked) > fewStranded {
		t.Errorf("%.1f GPUs are expected to be stranded, with %d impossible pods %.1f, want at most %d", clean, impossiblePods, attacked, fewStranded)
	}
}

// gauge is what the scheduler measures of the T4s.
func gauge(metrics []byte, name string) (float64, error) {
	found := regexp.MustCompile(`(?m)^` + name + `\{model="Tesla-T4"\} (\S+)$`).FindSubmatch(metrics)
	if found == nil {
		return 0, fmt.Errorf("the scheduler has no metric %s of the model Tesla-T4", name)
	}
	return strconv.ParseFloat(string(found[1]), 64)
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

// awaitDecided waits until so many pods of a namespace have a node or a reason why not.
func (a *attack) awaitDecided(t *testing.T, pods corelisters.PodNamespaceLister, n int) {
	t.Helper()
	a.Await(t, fmt.Sprintf("%d pods to be decided on", n), func(context.Context) (bool, error) {
		list, err := pods.List(labels.Everything())
		decided := 0
		for _, pod := range list {
			if pod.Spec.NodeName != "" || box.Reason(pod) != "" {
				decided++
			}
		}
		return decided == n, err
	})
}

// deleteAll deletes the pods of a namespace at once, and waits until they are gone.
func (a *attack) deleteAll(t *testing.T, namespace string, pods corelisters.PodNamespaceLister) {
	t.Helper()
	if err := a.Client.CoreV1().Pods(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	a.Await(t, "the pods of "+namespace+" to be gone", func(context.Context) (bool, error) {
		list, err := pods.List(labels.Everything())
		return err == nil && len(list) == 0, err
	})
}
