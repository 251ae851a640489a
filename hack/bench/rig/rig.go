// Package rig is what the benchmark programs measure on: a local control plane with nodes, a scheduler process of its
// own for every run, and the gauges: the process's CPU time, its metrics, and the requests that the API server served.
package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/sandbox"
)

// Rig is a local control plane without a scheduler and without kubelets: bound pods stay as they are.
type Rig struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// SchedulerEnv is added to the environment of the schedulers that are started ("GOGC=200").
	SchedulerEnv []string

	box     *sandbox.Sandbox
	dir     string
	started int
}

// Start brings up a control plane with the nodes of a file as sandbox.LoadNodes reads it.
func Start(ctx context.Context, nodesFile []byte) (*Rig, error) {
	dir, err := os.MkdirTemp("", "berth-bench")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the benchmark: %w", err)
	}
	r := &Rig{dir: dir}
	if err := r.start(ctx, nodesFile); err != nil {
		return nil, errors.Join(err, r.Stop())
	}
	return r, nil
}

func (r *Rig) start(ctx context.Context, nodesFile []byte) error {
	path := filepath.Join(r.dir, "nodes.yaml")
	if err := os.WriteFile(path, nodesFile, 0o600); err != nil {
		return fmt.Errorf("writing the nodes: %w", err)
	}
	box, err := sandbox.Start(ctx, sandbox.Options{
		Dir: filepath.Join(r.dir, "sandbox"), NodesFile: path, NoScheduler: true, NoKubelet: true, StopWithParent: true,
	}, nil)
	if err != nil {
		return err
	}
	r.box = box
	config, err := box.RESTConfig()
	if err != nil {
		return err
	}
	if r.Client, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if r.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return nil
}

// Stop ends the control plane and removes what it has written.
func (r *Rig) Stop() error {
	var stopped error
	if r.box != nil {
		stopped = r.box.Stop()
	}
	return errors.Join(stopped, os.RemoveAll(r.dir))
}

// ControlPlanePID is the process of etcd and the API server.
func (r *Rig) ControlPlanePID() (int, error) { return r.box.PID("control-plane") }

// Namespace creates a namespace.
func (r *Rig) Namespace(ctx context.Context, name string) error {
	_, err := r.Client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	return nil
}

// Empty deletes the pods of a namespace. The server breaks off when it has deleted for a minute, so it is asked until
// none is left.
func (r *Rig) Empty(ctx context.Context, namespace string) error {
	now := int64(0)
	for {
		err := r.Client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now},
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

// OneGPU is what the pods of most runs ask for.
func OneGPU() v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), "nvidia.com/gpu": resource.MustParse("1")}
}

// CreatePod creates a pod.
func (r *Rig) CreatePod(ctx context.Context, pod *v1.Pod) error {
	if _, err := r.Client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// creators is how many goroutines create objects at a time.
const creators = 8

// CreateAll calls create with 0 to n-1 from several goroutines, until one of them fails.
func CreateAll(n int, create func(i int) error) error {
	work := make(chan int)
	failed := make(chan error, creators)
	var wg sync.WaitGroup
	for range creators {
		wg.Go(func() {
			for i := range work {
				if err := create(i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	for i := range n {
		select {
		case work <- i:
		case err := <-failed:
			close(work)
			return err
		}
	}
	close(work)
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// settleTime is how long a scheduler still writes events of the last pods that it has bound.
const settleTime = 4 * time.Second

// Settle waits until a scheduler has written what belongs to the pods that are bound.
func Settle(ctx context.Context) error {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// AwaitBound waits until n pods of the namespace have a node and none is without.
func (r *Rig) AwaitBound(ctx context.Context, namespace string, n int) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	count := func(selector string) (int, error) {
		list, err := r.Client.CoreV1().Pods(namespace).List(ctx,
			metav1.ListOptions{FieldSelector: selector, ResourceVersion: "0"})
		if err != nil {
			return 0, fmt.Errorf("counting the pods of namespace %s: %w", namespace, err)
		}
		return len(list.Items), nil
	}
	for {
		pending, err := count("spec.nodeName=")
		if err != nil {
			return err
		}
		bound, err := count("spec.nodeName!=")
		if err != nil {
			return err
		}
		if pending == 0 && bound >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d pods of namespace %s, of which %d are bound: %w", n, namespace, bound, ctx.Err())
		case <-tick.C:
		}
	}
}
