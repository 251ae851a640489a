package demo

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"berth.dev/berth/pkg/process/schedulerconfig"
)

// workload is one file of manifests/examples and what should become of it.
type workload struct {
	name string
	// example is the folder of the file.
	example string
	// pods that the file leads to.
	pods int
	// pending workloads are not to be placed.
	pending bool
}

func (w workload) file() string { return "examples/" + w.example + "/" + w.name + ".yaml" }

// workloads in the order of their creation.
var workloads = []workload{
	{name: "gang-too-large", example: "09-training-gang", pods: 24, pending: true},
	{name: "ml-training", example: "00-first-pods", pods: 1},
	{name: "batch-processing", example: "00-first-pods", pods: 4},
	{name: "inference-shared", example: "11-shared-gpus", pods: 6},
	{name: "gang-training", example: "09-training-gang", pods: 8},
}

// workloadOf returns the workload that a pod belongs to: controllers name pods after it.
func workloadOf(pod *corev1.Pod) (workload, bool) {
	for _, w := range workloads {
		if strings.HasPrefix(pod.Name, w.name) {
			return w, true
		}
	}
	return workload{}, false
}

// watch follows the pods and knows when each was first seen bound.
type watch struct {
	nodes         []corev1.Node
	configuration *schedulerconfig.Configuration

	mu      sync.Mutex
	pods    map[string]*corev1.Pod
	boundAt map[string]time.Time
	changed time.Time
}

// newWatch starts to follow the pods of the default namespace until ctx ends.
func newWatch(ctx context.Context, client kubernetes.Interface) (*watch, error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	configuration, err := schedulerconfig.Shipped()
	if err != nil {
		return nil, err
	}
	d := &watch{
		nodes: nodes.Items, configuration: configuration,
		pods: map[string]*corev1.Pod{}, boundAt: map[string]time.Time{}, changed: time.Now(),
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(corev1.NamespaceDefault))
	informer := factory.Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { d.observe(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { d.observe(o.(*corev1.Pod)) },
	}); err != nil {
		return nil, fmt.Errorf("watching the pods: %w", err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return d, nil
}

func (d *watch) observe(pod *corev1.Pod) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pods[pod.Name] = pod
	if _, known := d.boundAt[pod.Name]; !known && pod.Spec.NodeName != "" {
		d.boundAt[pod.Name] = time.Now()
		d.changed = time.Now()
	}
}

func (d *watch) lastChange() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// settled counts the pods of a workload that are bound or, for one that is not to be placed, say why they are not.
func (d *watch) settled(w workload) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, pod := range d.pods {
		if of, ok := workloadOf(pod); !ok || of.name != w.name {
			continue
		}
		if w.pending && pendingReason(pod) != "" || !w.pending && pod.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// pendingReason is what the scheduler says of a pod that it has not placed.
func pendingReason(pod *corev1.Pod) string {
	if _, c := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return c.Message
	}
	return ""
}
