package replay

import (
	"fmt"
	"math"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"berth.dev/berth/pkg/cluster/stranded"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/gpu/gpuview/express"
	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/pkg/lab/trace"
	"berth.dev/berth/pkg/minheap"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/schedulerconfig"
)

// cluster plays users, controllers and kubelets for the scheduler: jobs arrive, their pods start when they are bound,
// run and end, and evicted pods are created again. Only the conductor calls its methods, except for observe.
type cluster struct {
	options Options
	profile string
	// shares has pods ask for shares of GPUs. Without it, such a pod takes a whole GPU.
	shares bool
	start  time.Time
	world  *simulation.World
	ledger *ledger
	// asking are the resource names with which the pods of jobs ask for GPUs.
	asking gpuview.Keys
	record *recorder

	jobs []jobState
	pods map[types.NamespacedName]*podState
	// gangs are those that have a pod on a node.
	gangs map[gang.ID]*gangState
	// trees are those of Kubernetes' own groups: each is one gang.
	trees  *read.OwnerPolicy
	next   int // the job that arrives next
	timers minheap.Heap[timer]
	// lastTimer is the sequence number of the timer that was set last.
	lastTimer int
	// unbound counts the pods without a node.
	unbound int
	// adopted counts the pods that existed at the start.
	adopted int
	// sharePods counts the pods to schedule that ask for a share of a GPU.
	sharePods int
	// foreign counts pods by schedulers that are not in the configuration; ungrouped are pods that name a PodGroup which
	// does not exist.
	foreign   map[string]int
	ungrouped map[gang.ID]sets.Set[types.UID]
	// failures are the scheduler's reasons why pods have no node.
	failures *failures
	// needs are the requested GPUs of pods of the dump that get more than they ask for, in thousandths.
	needs map[types.NamespacedName]int64
	// lowest is the lowest priority of all pods, including those that arrive later.
	lowest int32
	// progress is when a job last arrived, got its first node or ended, and longest the longest duration of a job. Pods
	// that only evict each other, or a gang that stays incomplete, make no progress.
	progress time.Time
	longest  time.Duration
	err      error

	mu      sync.Mutex
	events  []podEvent
	starts  estimatedStarts
	changed chan struct{}
}

type jobState struct {
	trace.Job
	arrived   time.Time
	bound     int  // pods with a node now
	remaining int  // pods that have not ended
	epoch     int  // counts restarts of a gang
	waited    bool // the wait is recorded
	work      work // of a gang
}

type podState struct {
	key        types.NamespacedName
	job        *jobState // nil for a pod of the dump
	index      int
	attempt    int
	node       string
	allocation *allocation
	gang       *gangState
	deleting   bool
	waited     bool
	work       work // of a pod alone
}

// podEvent says that a pod was bound or deleted.
type podEvent struct {
	pod   *v1.Pod
	bound bool // else deleted
}

func newCluster(in Input, options Options, profile string, config *schedulerconfig.Configuration) (*cluster, error) {
	keys, rules := config.GPUKeys(profile), config.CapacityRules(profile)
	priceOf, _, err := config.Prices(profile)
	if err != nil {
		return nil, inputError{config.Invalid(err)}
	}
	objects, err := in.Cluster(config, profile)
	if err != nil {
		return nil, inputError{err}
	}
	c := &cluster{
		options: options, profile: profile, shares: config.SharesGPUs(profile), start: options.Start,
		progress: options.Start, timers: minheap.Heap[timer]{Compare: compareTimers},
		world: simulation.NewWorld(), ledger: newLedger(keys),
		asking: express.OfferedFirst(keys, objects), pods: map[types.NamespacedName]*podState{},
		gangs: map[gang.ID]*gangState{}, trees: read.TreesOf(objects), needs: map[types.NamespacedName]int64{},
		foreign:   map[string]int{},
		ungrouped: map[gang.ID]sets.Set[types.UID]{}, lowest: math.MaxInt32, changed: make(chan struct{}, 1),
	}
	c.world.API.StartPods = true
	if options.Mode == replayed.VirtualTime {
		objects = shuffled(objects, options.Seed)
	}
	err = c.world.Fill(objects, func(obj runtime.Object) runtime.Object {
		switch o := obj.(type) {
		case *v1.Pod:
			c.prepare(o, in.Rebind, config)
		case *v1.Node:
			price, priced := priceOf(o)
			c.ledger.addNode(o, int64(price), priced, rules.TypeOf(o) == priceview.Spot)
		}
		return obj
	})
	if err != nil {
		return nil, inputError{err}
	}
	c.ledger.finish()
	if len(c.ledger.order) == 0 {
		return nil, inputError{fmt.Errorf("%s: the cluster has no nodes", in.Name)}
	}
	jobs := in.Jobs
	if options.Mode == replayed.ArrivalOrder {
		jobs = saturate(jobs, c.ledger.capacityMilli*options.Load/1000, options.Seed)
	}
	for _, j := range jobs {
		c.jobs = append(c.jobs, jobState{Job: j, remaining: j.Pods})
		c.longest = max(c.longest, j.Duration)
		c.lowest = min(c.lowest, j.Priority)
	}
	c.adopt()
	c.record = newRecorder(c)
	c.world.API.Observe = c.observe
	return c, nil
}

// prepare makes the configuration's scheduler responsible for a pod of the dump.
func (c *cluster) prepare(pod *v1.Pod, rebind bool, config *schedulerconfig.Configuration) {
	if rebind && pod.Spec.NodeName != "" && !podview.BelongsToNode(pod) && !podview.Finished(pod) {
		gpuview.Unplaced(pod).DeepCopyInto(pod)
	}
	if pod.Spec.NodeName != "" || podview.Finished(pod) {
		return
	}
	if _, err := config.Profile(pod.Spec.SchedulerName); err != nil || pod.Spec.SchedulerName == "" {
		if pod.Spec.SchedulerName != "" {
			c.foreign[pod.Spec.SchedulerName]++
		}
		pod.Spec.SchedulerName = c.profile
	}
	r, _, _ := c.ledger.request(pod)
	if r.Count > 0 && r.Milli < gpu.WholeMilli {
		c.sharePods++
	}
	if !config.SharesGPUs(pod.Spec.SchedulerName) && express.TakeWhole(&c.asking, pod) {
		c.needs[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = int64(r.TotalMilli(0))
	}
}

// need is the GPU request of a pod of the dump, in thousandths of a GPU.
func (c *cluster) need(pod *v1.Pod) int64 {
	if milli, known := c.needs[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]; known {
		return milli
	}
	r, _, _ := c.ledger.request(pod)
	return int64(r.TotalMilli(0))
}

// adopt counts the pods that exist at the start.
func (c *cluster) adopt() {
	for _, obj := range c.world.API.List(podResource) {
		pod := obj.(*v1.Pod)
		if g := c.gangOf(pod); g != nil && pod.Status.Phase == v1.PodSucceeded {
			g.ended++
		}
		if podview.Finished(pod) {
			continue
		}
		p := &podState{key: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, waited: true}
		c.pods[p.key] = p
		c.adopted++
		c.lowest = min(c.lowest, corev1helpers.PodPriority(pod))
		r, cpu, memory := c.ledger.request(pod)
		milli := r.Milli
		if _, given := c.needs[p.key]; given && r.Count > 0 {
			milli = int(c.needs[p.key]) / r.Count
		}
		c.ledger.mix.Add(pod, stranded.Need{CPUMilli: cpu, MemoryBytes: memory, Count: r.Count, Milli: milli,
			Models: r.Models})
		if pod.Spec.NodeName == "" {
			c.unbound++
			continue
		}
		p.node = pod.Spec.NodeName
		p.allocation = c.ledger.place(pod, c.need(pod))
		if g := c.gangOf(pod); g != nil {
			c.joined(g, p, false)
		}
	}
}

// ranks is the position of every node in the order in which the scheduler sees them.
func (c *cluster) ranks() map[string]int {
	rank := map[string]int{}
	for i, obj := range c.world.API.List(nodeResource) {
		rank[obj.(*v1.Node).Name] = i
	}
	return rank
}

// observe is called by the API with every change.
func (c *cluster) observe(e memapi.Event) {
	if group, ok := e.Object.(*unstructured.Unstructured); ok && e.GVR == podGroupResource && e.Type == memapi.Modified {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.starts.observe(group)
	}
	if e.GVR != podResource {
		return
	}
	pod := e.Object.(*v1.Pod)
	switch {
	case e.Type == memapi.Deleted:
		c.queue(podEvent{pod: pod})
	case e.Type == memapi.Modified && pod.Spec.NodeName != "" && e.Old.(*v1.Pod).Spec.NodeName == "":
		c.queue(podEvent{pod: pod, bound: true})
	}
}

func (c *cluster) queue(e podEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// handleEvents handles the queued events, and reports whether there were any.
func (c *cluster) handleEvents() bool {
	c.mu.Lock()
	events := c.events
	c.events = nil
	c.mu.Unlock()
	if len(events) == 0 {
		return false
	}
	now := time.Now()
	c.record.advance(now)
	for _, e := range events {
		p := c.pods[types.NamespacedName{Namespace: e.pod.Namespace, Name: e.pod.Name}]
		switch {
		case p == nil:
		case e.bound:
			c.bound(p, e.pod, now)
		default:
			c.gone(p)
		}
	}
	return true
}

// step carries out the next arrival or timer that is due, and reports whether there was one.
func (c *cluster) step(now time.Time, idle bool) bool {
	if c.options.Mode == replayed.ArrivalOrder {
		if !idle || c.next > len(c.jobs) {
			return false
		}
		if c.next > 0 {
			c.record.offered(&c.jobs[c.next-1].Job)
		}
		if c.next < len(c.jobs) {
			c.arrive(now)
			return true
		}
		c.next++
		return false
	}
	if c.timers.Len() > 0 && !c.timers.Items[0].at.After(now) {
		t := c.timers.Pop()
		if t.job.epoch != t.epoch || t.pod != nil && c.pods[t.pod.key] != t.pod {
			return true // the pod was evicted in the meantime
		}
		if c.record.advance(now); t.checkpoint {
			c.save(t)
		} else {
			c.finish(t)
		}
		return true
	}
	if c.next < len(c.jobs) && !c.arrival(c.next).After(now) {
		c.record.advance(now)
		c.arrive(now)
		return true
	}
	return false
}

func (c *cluster) arrival(i int) time.Time { return c.start.Add(c.jobs[i].Arrival) }

// patience is how long a replay continues while only pending pods are left.
const patience = simulation.Patience

// nextEvent is the time at which the conductor has to look again if nothing happens before.
func (c *cluster) nextEvent() time.Time {
	next := c.progress.Add(patience)
	if c.options.Mode == replayed.VirtualTime {
		if c.timers.Len() > 0 {
			next = c.timers.Items[0].at
		}
		if c.next < len(c.jobs) && (c.timers.Len() == 0 || c.arrival(c.next).Before(next)) {
			next = c.arrival(c.next)
		}
		if stuck := c.progress.Add(c.longest + patience); c.next == len(c.jobs) && stuck.Before(next) {
			next = stuck
		}
		if horizon := c.start.Add(c.options.Horizon); c.options.Horizon > 0 && horizon.Before(next) {
			next = horizon
		}
	}
	return next
}

// over reports whether the replay has ended, if the scheduler is idle.
func (c *cluster) over() bool {
	now := time.Now()
	switch {
	case c.err != nil:
		return true
	case c.options.Mode == replayed.ArrivalOrder:
		return c.next > len(c.jobs)
	case c.options.Horizon > 0 && !now.Before(c.start.Add(c.options.Horizon)):
		return true
	}
	if c.next < len(c.jobs) {
		return false
	}
	return !now.Before(c.progress.Add(c.longest+patience)) || c.timers.Len() == 0 &&
		(c.unbound == 0 || !now.Before(c.progress.Add(patience)))
}
