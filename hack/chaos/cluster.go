package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/invariants"
)

const (
	wholeNodes, wholeGPUs   = 6, 8
	sharedNodes, sharedGPUs = 4, 4
	// roundQuota is what etcd may store while faults are done: more than a round writes between two compactions, and
	// little to fill.
	roundQuota = 512 << 20
)

// quotaFor is how many bytes etcd may store. Fifty pods a second write more than a round's between two compactions.
func quotaFor(soak bool) int64 {
	if soak {
		return 0 // the default, 8 GiB
	}
	return roundQuota
}

// scaleFor is how many times the smallest cluster is needed for a number of pods a second: for a while more pods may
// come than fit, for a soak they must not.
func scaleFor(podsPerSecond float64, soak bool) int {
	perCluster := 14.0
	if soak {
		perCluster = 7
	}
	return max(1, int(math.Ceil(podsPerSecond/perCluster)))
}

// nodesFile is the cluster at a scale.
func nodesFile(scale int) string {
	return fmt.Sprintf(`shapes:
- {name: whole, count: %d, labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.count: "%d"},
   allocatable: {cpu: "64", memory: 512Gi, nvidia.com/gpu: "%d"}}
- {name: shared, count: %d, labels: {nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.count: "%d", berth.dev/gpu-mode: shared},
   allocatable: {cpu: "64", memory: 256Gi, nvidia.com/gpu: "%d"}}
- {name: cpu, count: %d, allocatable: {cpu: "32", memory: 64Gi}}
`, scale*wholeNodes, wholeGPUs, wholeGPUs, scale*sharedNodes, sharedGPUs, sharedGPUs, scale*2)
}

// cluster is a sandbox with etcd and the API server as processes of their own, and two schedulers behind a proxy.
type cluster struct {
	dir, binary string
	scale       int
	box         *sandbox.Sandbox
	connections
	replicas []*replica
	// checker holds every change against what a scheduler promises. While a fault lasts, gangs are excused: they are not
	// counted as started in part.
	checker *invariants.Checker
	excused atomic.Bool
	watched *observer
	load    *load

	stop    context.CancelFunc
	running sync.WaitGroup
}

// connections lead to the control plane, and through a proxy from the schedulers.
type connections struct {
	config       *rest.Config
	client       kubernetes.Interface
	custom       dynamic.Interface
	toSchedulers *http.Client
	proxy        *proxy
}

// startCluster starts the cluster for a run.
func startCluster(ctx context.Context, o *options) (_ *cluster, err error) {
	c := &cluster{checker: invariants.New(invariants.Patience), scale: scaleFor(o.podsPerSecond, o.soak > 0)}
	c.excused.Store(true)
	if c.binary, err = sandbox.FindBinary(); err != nil {
		return nil, err
	}
	if c.dir, err = os.MkdirTemp("", "berth-chaos-"); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	file := filepath.Join(c.dir, "nodes.yaml")
	if err := os.WriteFile(file, []byte(nodesFile(c.scale)), 0o600); err != nil {
		return nil, fmt.Errorf("writing the nodes: %w", err)
	}
	c.box, err = sandbox.Start(ctx, sandbox.Options{
		Dir: filepath.Join(c.dir, "sandbox"), NodesFile: file, NoScheduler: true, Split: true, StopWithParent: true,
		EtcdQuotaBytes: quotaFor(o.soak > 0),
		Binary:         c.binary,
	}, nil)
	if err != nil {
		return nil, err
	}
	if err := c.connect(o.seed); err != nil {
		return nil, err
	}
	if err := c.furnish(ctx); err != nil {
		return nil, err
	}
	ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.watched = newObserver(c.checker)
	following := c.watched.follow(ctx, c.client, c.custom)
	c.running.Go(following.Wait)
	c.load = newLoad(c.client, c.custom, c.watched, o.seed, 3*time.Second)
	c.running.Go(func() { c.live(ctx) })
	for number := range 2 {
		at, err := sandbox.ReservePort(0)
		if err != nil {
			return nil, err
		}
		c.replicas = append(c.replicas, &replica{number: number, at: at})
	}
	return c, c.startReplica(c.replicas[0])
}

// connect makes the clients, the proxy and what the schedulers read.
func (c *cluster) connect(seed uint64) (err error) {
	if c.config, err = c.box.RESTConfig(); err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if c.custom, err = dynamic.NewForConfig(c.config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if c.toSchedulers, err = rest.HTTPClientFor(c.config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	server, err := url.Parse(c.config.Host)
	if err != nil {
		return fmt.Errorf("reading the address of the API server: %w", err)
	}
	if c.proxy, err = newProxy(server.Host, seed); err != nil {
		return err
	}
	keys, kubeconfig := sandbox.Layout(c.box.Dir()).Keys(), filepath.Join(c.dir, "scheduler.kubeconfig")
	if err := keys.WriteKubeconfig(kubeconfig, "https://"+c.proxy.address(), sandbox.KeyScheduler); err != nil {
		return err
	}
	config, err := schedulerConfig(kubeconfig)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.dir, "scheduler-config.yaml"), config, 0o600); err != nil {
		return fmt.Errorf("writing the scheduler's configuration: %w", err)
	}
	return nil
}

// furnish makes the namespace and the classes of priority.
func (c *cluster) furnish(ctx context.Context) error {
	space := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := c.client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the namespace: %w", err)
	}
	for name, value := range map[string]int32{lowClass: 0, highClass: 1000} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if _, err := c.client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a class of priority: %w", err)
		}
	}
	return nil
}

// live tends the jobs until the context ends, and looks for gangs that stay bound in part, but for the time of a fault.
func (c *cluster) live(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		c.load.tend(ctx)
		// A gang whose bindings are stuck in an API server without a core to run on is not the scheduler's.
		if c.excused.Load() || c.load.heardFor() < 2*invariants.Patience {
			c.checker.Excuse()
		} else {
			c.checker.Tick()
		}
	}
}

// kill ends a component of the control plane, which the sandbox starts again, and waits until another one runs.
func (c *cluster) kill(ctx context.Context, component string) error {
	before, err := c.box.PID(component)
	if err != nil {
		return err
	}
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing %s: %w", component, err)
	}
	return await(ctx, "another "+component, func(context.Context) (bool, error) {
		now, err := c.box.PID(component)
		return err == nil && now != before, nil
	})
}

// serves waits until the API server answers and can read and write.
func (c *cluster) serves(ctx context.Context) error {
	return await(ctx, "the API server", func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
}

func (c *cluster) close() error {
	if c.stop != nil {
		c.stop()
	}
	for _, r := range c.replicas {
		if r.alive() {
			_ = r.signal(syscall.SIGKILL)
		}
		_ = r.at.Close()
	}
	if c.proxy != nil {
		c.proxy.close()
	}
	c.running.Wait()
	var err error
	if c.box != nil {
		err = c.box.Stop()
	}
	return err
}

// within bounds every wait for what has to happen after a fault.
const within = 2 * time.Minute

func await(ctx context.Context, what string, done wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, within, true, done); err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
