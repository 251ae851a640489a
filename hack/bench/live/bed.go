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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/sandbox"
)

// Bed is a local control plane without a scheduler and without kubelets: bound pods stay as they are.
type Bed struct {
	client kubernetes.Interface
	// ctx is that of a run, as a test has one.
	ctx context.Context
	box *sandbox.Sandbox
	dir string
}

// On brings up a control plane with the nodes of a file as sandbox.LoadNodes reads it, has a benchmark use it, and ends
// it.
func On(ctx context.Context, nodesFile []byte, use func(*Bed)) (err error) {
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
		b.start(nodesFile)
		use(b)
	})
}

func (b *Bed) start(nodesFile []byte) {
	path := filepath.Join(b.dir, "nodes.yaml")
	rig.Check(os.WriteFile(path, nodesFile, 0o600), "writing the nodes")
	b.box = rig.Must(sandbox.Start(b.ctx, sandbox.Options{Dir: filepath.Join(b.dir, "sandbox"), NodesFile: path,
		NoScheduler: true, NoKubelet: true, StopWithParent: true}, nil))
	b.client = rig.Must(kubernetes.NewForConfig(rig.Must(b.box.RESTConfig())))
}

// Namespace creates a namespace.
func (b *Bed) Namespace(name string) {
	_, err := b.client.CoreV1().Namespaces().Create(b.ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	rig.Check(err, "creating namespace %s", name)
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

// creators is how many goroutines create pods at a time.
const creators = 8

// CreatePods creates n pods, as fast as the API server takes them. It starts no more once one has failed.
func (b *Bed) CreatePods(n int, pod func(i int) *v1.Pod) {
	all, failed := errgroup.WithContext(b.ctx)
	all.SetLimit(creators)
	for i := 0; i < n && failed.Err() == nil; i++ {
		all.Go(func() error {
			p := pod(i)
			if _, err := b.client.CoreV1().Pods(p.Namespace).Create(b.ctx, p, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("creating pod %s/%s: %w", p.Namespace, p.Name, err)
			}
			return nil
		})
	}
	rig.Fail(all.Wait())
}

// settleTime is how long a scheduler still writes events of the last pods that it has bound.
const settleTime = 4 * time.Second

// Settle waits until a scheduler has written what belongs to the pods that are bound.
func (b *Bed) Settle() {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.ctx.Done():
		rig.Check(context.Cause(b.ctx), "waiting %s", settleTime)
	}
}
