// Package live is what benchmarks measure on that need a real API server: a local control plane with nodes, a scheduler
// process of its own for every run, pods, and the gauges: CPU time, metrics, memory, and when pods are bound. A
// benchmark starts a Bed with On, a scheduler with StartScheduler, and has Measure look at what it does with them.
package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/sandbox"
)

// Bed is a local control plane without a scheduler and without kubelets: bound pods stay as they are.
type Bed struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// SchedulerEnv is added to the environment of the schedulers that are started ("GOGC=200").
	SchedulerEnv []string

	box     *sandbox.Sandbox
	dir     string
	started int
}

// On brings up a control plane with the nodes of a file as sandbox.LoadNodes reads it, has a benchmark use it, and ends
// it. What the benchmark watches with its context ends then, too.
func On(ctx context.Context, nodesFile []byte, use func(context.Context, *Bed) error) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	dir, err := os.MkdirTemp("", "berth-bench")
	if err != nil {
		return fmt.Errorf("making a folder for the benchmark: %w", err)
	}
	b := &Bed{dir: dir}
	defer func() {
		if b.box != nil {
			err = errors.Join(err, b.box.Stop())
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	if err := b.start(ctx, nodesFile); err != nil {
		return err
	}
	return use(ctx, b)
}

func (b *Bed) start(ctx context.Context, nodesFile []byte) error {
	path := filepath.Join(b.dir, "nodes.yaml")
	if err := os.WriteFile(path, nodesFile, 0o600); err != nil {
		return fmt.Errorf("writing the nodes: %w", err)
	}
	var err error
	if b.box, err = sandbox.Start(ctx, sandbox.Options{
		Dir: filepath.Join(b.dir, "sandbox"), NodesFile: path, NoScheduler: true, NoKubelet: true, StopWithParent: true,
	}, nil); err != nil {
		return err
	}
	config, err := b.box.RESTConfig()
	if err != nil {
		return err
	}
	if b.Client, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if b.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return nil
}

// ThreeModels is a fleet of three models of GPUs.
func ThreeModels(nodes int) []byte {
	file := []byte("shapes:\n")
	for i, model := range []string{"NVIDIA-A100-SXM4-80GB", "NVIDIA-A10", "Tesla-T4"} {
		file = fmt.Appendf(file,
			"- name: m%d\n  count: %d\n  labels: {nvidia.com/gpu.product: %s, nvidia.com/gpu.count: \"8\"}\n"+
				"  allocatable: {cpu: \"96\", memory: 512Gi, pods: \"110\", nvidia.com/gpu: \"8\"}\n", i, (nodes+2-i)/3, model)
	}
	return file
}

// Namespace creates a namespace.
func (b *Bed) Namespace(ctx context.Context, name string) error {
	_, err := b.Client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	return nil
}

// Empty deletes the pods of a namespace. The server breaks off when it has deleted for a minute, so it is asked until
// none is left.
func (b *Bed) Empty(ctx context.Context, namespace string) error {
	now := int64(0)
	for {
		err := b.Client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now},
			metav1.ListOptions{})
		switch {
		case err == nil:
			return nil
		case !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err), ctx.Err() != nil:
			return fmt.Errorf("deleting the pods of namespace %s: %w", namespace, err)
		}
	}
}

// Pod is a pod of one container for the scheduler's profile.
func Pod(namespace, name, profile string, requests v1.ResourceList) *v1.Pod {
	limits := v1.ResourceList{}
	for resourceName, q := range requests {
		if resourceName != v1.ResourceCPU && resourceName != v1.ResourceMemory {
			limits[resourceName] = q
		}
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1.PodSpec{SchedulerName: profile, AutomountServiceAccountToken: ptr.To(false), Containers: []v1.Container{
			{Name: "c", Image: "c", Resources: v1.ResourceRequirements{Requests: requests, Limits: limits}},
		}},
	}
}

// GPUs is what a pod asks for that has one core for each of its GPUs.
func GPUs(n int64) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI),
		"nvidia.com/gpu": *resource.NewQuantity(n, resource.DecimalSI)}
}

// CreatePod creates a pod.
func (b *Bed) CreatePod(ctx context.Context, pod *v1.Pod) error {
	if _, err := b.Client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// CreatePods creates the pods of the numbers from one to before another, as fast as the API server takes them.
func (b *Bed) CreatePods(ctx context.Context, from, to int, pod func(i int) *v1.Pod) error {
	return CreateAll(to-from, func(i int) error { return b.CreatePod(ctx, pod(from+i)) })
}

// creators is how many goroutines create objects at a time.
const creators = 8

// CreateAll calls create with 0 to n-1 from several goroutines. It starts no more calls once one has failed.
func CreateAll(n int, create func(i int) error) error {
	all, failed := errgroup.WithContext(context.Background())
	all.SetLimit(creators)
	for i := 0; i < n && failed.Err() == nil; i++ {
		all.Go(func() error { return create(i) })
	}
	return all.Wait()
}

// settleTime is how long a scheduler still writes events of the last pods that it has bound.
const settleTime = 4 * time.Second

// Settle waits until a scheduler has written what belongs to the pods that are bound.
func Settle(ctx context.Context) error { return Pause(ctx, settleTime) }

// Pause waits for a time.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
