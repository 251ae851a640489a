package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/gpu/gpuview/express"
)

const (
	namespace = "chaos"
	profile   = "berth-scheduler"
	lowClass  = "chaos-low"
	highClass = "chaos-high"
)

// job is work: one pod, or a gang that starts whole.
type job struct {
	name     string
	size     int
	gang     bool
	gpus     int
	milliGPU int
	milliCPU int64
	class    string
	// lifetime is how long it runs once all its pods have a node.
	lifetime time.Duration

	progress
}

// progress is how far a job is.
type progress struct {
	grouped bool
	pods    map[string]bool // names, and whether the pod has been seen
	next    int
	bound   time.Time
	// ending says that it has run: what has to go is asked for until the API server has said yes to all of it.
	ending bool
}

// load keeps jobs coming, makes pods again that were evicted, and removes jobs that have run.
type load struct {
	client  kubernetes.Interface
	custom  dynamic.Interface
	watched *observer

	mu     sync.Mutex
	random *rand.Rand
	jobs   []*job
	made   int
	// pods were made and evicted since the last seed.
	pods, evicted atomic.Int64
	arrivals
	// refused is when the API server last did not do what it was asked, or took long, in nanoseconds since 1970.
	refused atomic.Int64
}

// arrivals is how fast jobs come and go.
type arrivals struct {
	// perSecond pods come; 0 stops arrivals. frozen jobs do not end.
	perSecond float64
	frozen    bool
	owed      float64
	last      time.Time
	mean      time.Duration
}

func newLoad(client kubernetes.Interface, custom dynamic.Interface, watched *observer, seed uint64,
	mean time.Duration) *load {
	l := &load{client: client, custom: custom, watched: watched, arrivals: arrivals{mean: mean, last: time.Now()}}
	l.seed(seed)
	return l
}

// seed decides the jobs that come from now on, and starts the counts again.
func (l *load) seed(seed uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.random = rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // a round must come again from its seed
	l.pods.Store(0)
	l.evicted.Store(0)
}

// counts are the pods that were made and those that were evicted since the last seed.
func (l *load) counts() (pods, evicted int) {
	return int(l.pods.Load()), int(l.evicted.Load())
}

// abandon gives up what is left, so that the next round begins with nothing.
func (l *load) abandon(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range l.jobs {
		l.remove(ctx, j)
	}
	l.jobs = nil
}

// draw makes a random job: half of the pods are in gangs, a third of the others are shares, and a tenth of the jobs
// evict others.
func (l *load) draw() *job {
	l.made++
	j := &job{
		name: fmt.Sprintf("j%d", l.made), size: 1, milliCPU: 500, class: lowClass,
		progress: progress{pods: map[string]bool{}},
		lifetime: l.mean/2 + time.Duration(l.random.Int64N(int64(l.mean))),
	}
	switch l.random.IntN(10) {
	case 0, 1:
		j.gang, j.size, j.gpus = true, 2+l.random.IntN(3), 1<<l.random.IntN(3)
	case 2:
		j.gang, j.size, j.milliGPU = true, 2+l.random.IntN(3), 250+50*l.random.IntN(10)
	case 3, 4, 5:
		j.milliGPU = 100 + 100*l.random.IntN(9)
	case 6:
		j.milliCPU = 4000
	default:
		j.gpus = []int{1, 1, 2, 4, 8}[l.random.IntN(5)]
	}
	if l.random.IntN(10) == 0 {
		j.class = highClass
	}
	return j
}

// tend does one round. What the API server refuses, or does not answer, is tried again in the next.
func (l *load) tend(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	pods := l.watched.pods()
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.owed = min(l.owed+now.Sub(l.last).Seconds()*l.perSecond, max(l.perSecond, 1))
	l.last = now
	for l.owed >= 1 {
		j := l.draw()
		l.jobs = append(l.jobs, j)
		l.owed -= float64(j.size)
	}
	var clients errgroup.Group
	clients.SetLimit(atATime)
	done := make([]bool, len(l.jobs))
	for i, j := range l.jobs {
		clients.Go(func() error {
			done[i] = l.advance(ctx, j, pods, now)
			return nil
		})
	}
	_ = clients.Wait()
	left := l.jobs[:0]
	for i, j := range l.jobs {
		if !done[i] {
			left = append(left, j)
		}
	}
	l.jobs = left
}

// atATime is how many jobs are tended at a time: one after the other would take longer than the time in which they
// come.
const atATime = 8

// advance makes what a job lacks, or removes it when it has run, and says whether it is done with.
func (l *load) advance(ctx context.Context, j *job, pods map[string]*v1.Pod, now time.Time) bool {
	if ctx.Err() != nil {
		return false
	}
	if j.ending {
		return l.remove(ctx, j)
	}
	bound := 0
	for name, seen := range j.pods {
		pod := pods[name]
		switch {
		case pod == nil && seen:
			delete(j.pods, name)
			l.evicted.Add(1)
		case pod != nil:
			j.pods[name] = true
			if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
				bound++
			}
		}
	}
	if bound < j.size {
		j.bound = time.Time{}
		l.create(ctx, j)
		return false
	}
	if j.bound.IsZero() {
		j.bound = now
	}
	if l.frozen || now.Sub(j.bound) < j.lifetime {
		return false
	}
	return l.remove(ctx, j)
}

func (l *load) create(ctx context.Context, j *job) {
	if j.gang && !j.grouped {
		group := read.NewPodGroup(namespace, j.name, j.size)
		err := l.ask(func() error {
			_, err := l.custom.Resource(podGroups).Namespace(namespace).Create(ctx, group, metav1.CreateOptions{})
			return err
		})
		if j.grouped = err == nil || apierrors.IsAlreadyExists(err); !j.grouped {
			return
		}
	}
	for name, seen := range j.pods {
		// One that is not seen may have come and gone while nothing could be watched.
		if !seen && !l.put(ctx, j, name) {
			return
		}
	}
	for len(j.pods) < j.size {
		name := fmt.Sprintf("%s-%d", j.name, j.next)
		if !l.put(ctx, j, name) {
			return
		}
		j.pods[name] = false
		j.next++
		l.pods.Add(1)
	}
}

// put creates the pod unless there is one, and reports whether there is one then.
func (l *load) put(ctx context.Context, j *job, name string) bool {
	err := l.ask(func() error {
		_, err := l.client.CoreV1().Pods(namespace).Create(ctx, j.pod(name), metav1.CreateOptions{})
		return err
	})
	return err == nil || apierrors.IsAlreadyExists(err)
}

func (l *load) remove(ctx context.Context, j *job) bool {
	j.ending = true
	for name := range j.pods {
		err := l.ask(func() error { return l.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{}) })
		if err != nil && !apierrors.IsNotFound(err) {
			return false
		}
	}
	if j.gang {
		err := l.ask(func() error {
			return l.custom.Resource(podGroups).Namespace(namespace).Delete(ctx, j.name, metav1.DeleteOptions{})
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return false
		}
	}
	return true
}

func (j *job) pod(name string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1.PodSpec{
			SchedulerName: profile, PriorityClassName: j.class, AutomountServiceAccountToken: ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To(int64(1)), RestartPolicy: v1.RestartPolicyNever,
			Containers: []v1.Container{{Name: "main", Image: "chaos.invalid/main", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(j.milliCPU, resource.DecimalSI)},
			}}},
		},
	}
	keys := gpuview.DefaultKeys()
	switch {
	case j.gpus > 0:
		express.Whole(&keys, pod, j.gpus)
		pod.Spec.Containers[0].Resources.Limits = v1.ResourceList{}
		for name, amount := range pod.Spec.Containers[0].Resources.Requests {
			pod.Spec.Containers[0].Resources.Limits[name] = amount
		}
	case j.milliGPU > 0:
		express.Share(pod, j.milliGPU)
	}
	if j.gang {
		read.Join(pod, j.name)
	}
	return pod
}

// set changes how many pods come a second, and whether jobs end.
func (l *load) set(perSecond float64, frozen bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.perSecond, l.frozen, l.owed, l.last = perSecond, frozen, 0, time.Now()
}

// add starts a job that was not drawn.
func (l *load) add(j *job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j.pods = map[string]bool{}
	l.jobs = append(l.jobs, j)
}

// waiting are the jobs that are not done.
func (l *load) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.jobs)
}

// tooLong is longer than any request takes on a machine that is not overloaded.
const tooLong = 500 * time.Millisecond

// ask sends a request and remembers when the API server did not do it, or not soon.
func (l *load) ask(send func() error) error {
	began := time.Now()
	err := send()
	if now := time.Now(); now.Sub(began) > tooLong || err != nil && !apierrors.IsNotFound(err) &&
		!apierrors.IsAlreadyExists(err) {
		l.refused.Store(now.UnixNano())
	}
	return err
}

// heardFor is how long the API server has done all that it was asked, and soon.
func (l *load) heardFor() time.Duration {
	return time.Since(time.Unix(0, l.refused.Load()))
}
