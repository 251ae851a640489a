// Package live is what benchmarks measure on that need a real API server: a local control plane with nodes, a scheduler
// process of its own for every run, pods, and the gauges: CPU time, metrics, memory, and when pods are bound. A
// benchmark starts a Bed with On, a scheduler with StartScheduler, and has Measure look at what it does with them.
//
// What goes wrong ends the benchmark, as it would end a test: see rig.Check.
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

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/sandbox"
)

// Bed is a local control plane without a scheduler and without kubelets: bound pods stay as they are.
type Bed struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// SchedulerEnv is added to the environment of the schedulers that are started ("GOGC=200").
	SchedulerEnv []string

	// ctx is that of a run, as a test has one.
	ctx context.Context
	box *sandbox.Sandbox
	dir string
}

// Context ends with the use of the bed, or when that is interrupted.
func (b *Bed) Context() context.Context { return b.ctx }

// On brings up a control plane with the nodes of a file as sandbox.LoadNodes reads it, has a benchmark use it, and ends
// it. Options change how the control plane is started.
func On(ctx context.Context, nodesFile []byte, use func(*Bed), options ...func(*sandbox.Options)) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	dir, err := os.MkdirTemp("", "berth-bench")
	if err != nil {
		return fmt.Errorf("making a folder for the benchmark: %w", err)
	}
	b := &Bed{ctx: ctx, dir: dir}
	defer func() {
		if b.box != nil {
			err = errors.Join(err, b.box.Stop())
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	return rig.Catch(func() {
		b.start(nodesFile, options)
		use(b)
	})
}

func (b *Bed) start(nodesFile []byte, options []func(*sandbox.Options)) {
	path := filepath.Join(b.dir, "nodes.yaml")
	rig.Check(os.WriteFile(path, nodesFile, 0o600), "writing the nodes")
	with := sandbox.Options{Dir: filepath.Join(b.dir, "sandbox"), NodesFile: path, NoScheduler: true, NoKubelet: true,
		StopWithParent: true}
	for _, change := range options {
		change(&with)
	}
	b.box = rig.Must(sandbox.Start(b.ctx, with, nil))
	config := rig.Must(b.box.RESTConfig())
	b.Client = rig.Must(kubernetes.NewForConfig(config))
	b.Dynamic = rig.Must(dynamic.NewForConfig(config))
}

// Within has a run use the bed for a limited time.
func (b *Bed) Within(limit time.Duration, run func(*Bed)) error {
	ctx, cancel := context.WithTimeoutCause(b.ctx, limit, fmt.Errorf("the run took longer than %s", limit))
	defer cancel()
	limited := *b
	limited.ctx = ctx
	return rig.Catch(func() { run(&limited) })
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
func (b *Bed) Namespace(name string) {
	_, err := b.Client.CoreV1().Namespaces().Create(b.ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	rig.Check(err, "creating namespace %s", name)
}

// Empty deletes the pods of a namespace. The server breaks off when it has deleted for a minute, so it is asked until
// none is left.
func (b *Bed) Empty(namespace string) {
	now := int64(0)
	for {
		err := b.Client.CoreV1().Pods(namespace).DeleteCollection(b.ctx, metav1.DeleteOptions{GracePeriodSeconds: &now},
			metav1.ListOptions{})
		if apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) {
			continue
		}
		rig.Check(err, "deleting the pods of namespace %s", namespace)
		return
	}
}

// Pod is a pod of one container for the scheduler's profile. It is pending, as each pod of an API server: without a phase
// the informers of pods that have ended would be told of it.
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
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
}

// GPUs is what a pod asks for that has one core for each of its GPUs.
func GPUs(n int64) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI),
		"nvidia.com/gpu": *resource.NewQuantity(n, resource.DecimalSI)}
}

// CreatePod creates a pod.
func (b *Bed) CreatePod(pod *v1.Pod) {
	_, err := b.Client.CoreV1().Pods(pod.Namespace).Create(b.ctx, pod, metav1.CreateOptions{})
	rig.Check(err, "creating pod %s/%s", pod.Namespace, pod.Name)
}

// CreatePods creates the pods of the numbers from one to before another, as fast as the API server takes them.
func (b *Bed) CreatePods(from, to int, pod func(i int) *v1.Pod) {
	CreateAll(to-from, func(i int) { b.CreatePod(pod(from + i)) })
}

// creators is how many goroutines create objects at a time.
const creators = 8

// CreateAll calls create with 0 to n-1 from several goroutines. It starts no more calls once one has failed.
func CreateAll(n int, create func(i int)) {
	all, failed := errgroup.WithContext(context.Background())
	all.SetLimit(creators)
	for i := 0; i < n && failed.Err() == nil; i++ {
		all.Go(func() error { return rig.Catch(func() { create(i) }) })
	}
	rig.Fail(all.Wait())
}

// settleTime is how long a scheduler still writes events of the last pods that it has bound.
const settleTime = 4 * time.Second

// Settle waits until a scheduler has written what belongs to the pods that are bound.
func (b *Bed) Settle() { b.Pause(settleTime) }

// Pause waits for a time.
func (b *Bed) Pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.ctx.Done():
		rig.Check(context.Cause(b.ctx), "waiting %s", d)
	}
}
