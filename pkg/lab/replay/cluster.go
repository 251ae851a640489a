package replay

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"berth.dev/berth/pkg/cluster/stranded"
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
	"berth.dev/berth/pkg/process/schedulerconfig"
)

// cluster is the world around the scheduler: jobs arrive, their pods start when they are bound, run and end, and those
// that are evicted are made again. Its methods are called by the conductor only, but for note.
type cluster struct {
	options Options
	profile string
	dialect dialect
	start   time.Time
	world   *simulation.World
	ledger  *ledger
	// asking are the names by which the pods of jobs ask for GPUs.
	asking gpuview.Keys
	record *recorder

	jobs []jobState
	pods map[types.NamespacedName]*podState
	// gangs are those that have a pod on a node.
	gangs map[gang.ID]*gangState
	// trees are those of Kubernetes' own groups: each is one gang.
	trees *read.Trees
	next  int // the job that arrives next
	ends  minheap.Heap[end]
	// live counts pods that exist and unbound those of them without a node.
	live, unbound int
	// adopted counts the pods that were there from the start.
	adopted int
	// sharePods counts the pods that were to be scheduled and asked for a share of a GPU.
	sharePods int
	// foreign counts pods by the scheduler that they name and the configuration does not have, and ungrouped are those
	// that name a PodGroup which does not exist.
	foreign   map[string]int
	ungrouped map[gang.ID]sets.Set[types.UID]
	// heard is what the scheduler says of pods.
	heard *verdicts
	// needs are the GPUs of pods of the dump that are given more than they ask for.
	needs map[types.NamespacedName]int64
	// lowest is the lowest priority of all pods that there are and will be.
	lowest int32
	// progress is when a job last arrived, got its first node or ended, and longest the longest that one runs: pods
	// that only evict each other, or a gang whose pods hold nodes and never are complete, make none.
	progress time.Time
	longest  time.Duration
	err      error
	// nominated says that the API has seen a pod with a nominated node.
	nominated atomic.Bool

	mu      sync.Mutex
	noted   []note
	told    toldStarts
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
	key      types.NamespacedName
	job      *jobState // nil for a pod of the dump
	index    int
	attempt  int
	node     string
	held     *holding
	gang     *gangState
	deleting bool
	waited   bool
	work     work // of a pod alone
}

// note is something that the API saw happen to a pod.
type note struct {
	pod   *v1.Pod
	bound bool // else deleted
}

func newCluster(in Input, options Options, profile string, config *schedulerconfig.Configuration) (*cluster, error) {
	keys := config.GPUKeys(profile)
	priceOf, _, err := config.Prices(profile)
	if err != nil {
		return nil, inputError{config.Invalid(err)}
	}
	objects, err := in.Cluster(config, profile)
	if err != nil {
		return nil, inputError{err}
	}
	c := &cluster{
		options: options, profile: profile, dialect: dialect(config.SharesGPUs(profile)), start: options.Start,
		progress: options.Start, ends: minheap.Heap[end]{Compare: compareEnds},
		world: simulation.NewWorld(), ledger: newLedger(keys, config.CapacityRules(profile), priceOf),
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
			c.nominated.CompareAndSwap(false, o.Status.NominatedNodeName != "")
		case *v1.Node:
			c.ledger.addNode(o)
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
	c.world.API.Observe = c.note
	return c, nil
}

// prepare makes a pod of a dump one that the configuration's scheduler can act on.
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

// need is what a pod of the dump asks for of its GPUs.
func (c *cluster) need(pod *v1.Pod) int64 {
	if milli, known := c.needs[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]; known {
		return milli
	}
	r, _, _ := c.ledger.request(pod)
	return int64(r.TotalMilli(0))
}

// adopt counts the pods that are there from the start.
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
		c.live++
		c.adopted++
		c.lowest = min(c.lowest, corev1helpers.PodPriority(pod))
		r, cpu, memory := c.ledger.request(pod)
		milli := r.Milli
		if _, given := c.needs[p.key]; given && r.Count > 0 {
			milli = int(c.needs[p.key]) / r.Count
		}
		c.ledger.kinds.Add(pod, stranded.Need{CPUMilli: cpu, MemoryBytes: memory, Count: r.Count, Milli: milli,
			Models: r.Models})
		if pod.Spec.NodeName == "" {
			c.unbound++
			continue
		}
		p.node = pod.Spec.NodeName
		p.held = c.ledger.place(pod, c.need(pod))
		if g := c.gangOf(pod); g != nil {
			c.joined(g, p, false)
		}
	}
}

// ranks is the place of every node in the order in which the scheduler gets to know them.
func (c *cluster) ranks() map[string]int {
	rank := map[string]int{}
	for i, obj := range c.world.API.List(nodeResource) {
		rank[obj.(*v1.Node).Name] = i
	}
	return rank
}

// note is called by the API with every change.
func (c *cluster) note(e memapi.Event) {
	if group, ok := e.Object.(*unstructured.Unstructured); ok && e.GVR == podGroupResource && e.Type == memapi.Modified {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.told.see(group)
	}
	if e.GVR != podResource {
		return
	}
	pod := e.Object.(*v1.Pod)
	if pod.Status.NominatedNodeName != "" {
		c.nominated.Store(true)
	}
	switch {
	case e.Type == memapi.Deleted:
		c.keep(note{pod: pod})
	case e.Type == memapi.Modified && pod.Spec.NodeName != "" && e.Old.(*v1.Pod).Spec.NodeName == "":
		c.keep(note{pod: pod, bound: true})
	}
}

func (c *cluster) keep(n note) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noted = append(c.noted, n)
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// digest acts on what the API has seen, and says whether there was anything.
func (c *cluster) digest() bool {
	c.mu.Lock()
	noted := c.noted
	c.noted = nil
	c.mu.Unlock()
	if len(noted) == 0 {
		return false
	}
	now := time.Now()
	c.record.advance(now)
	for _, n := range noted {
		p := c.pods[types.NamespacedName{Namespace: n.pod.Namespace, Name: n.pod.Name}]
		switch {
		case p == nil:
		case n.bound:
			c.bound(p, n.pod, now)
		default:
			c.gone(p)
		}
	}
	return true
}

// step makes the next thing of the trace happen, if one is due, and says whether it did.
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
	if c.ends.Len() > 0 && !c.ends.Items[0].at.After(now) {
		end := c.ends.Pop()
		if end.job.epoch != end.epoch || end.pod != nil && c.pods[end.pod.key] != end.pod {
			return true // the pod was evicted in the meantime
		}
		if c.record.advance(now); end.checkpoint {
			c.save(end)
		} else {
			c.finish(end)
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

// patience is how long a replay goes on when no job is left to arrive or end but pods are pending.
const patience = simulation.Patience

// nextEvent is when something will happen next without an event, at the latest.
func (c *cluster) nextEvent() time.Time {
	next := c.progress.Add(patience)
	if c.options.Mode == replayed.VirtualTime {
		if c.ends.Len() > 0 {
			next = c.ends.Items[0].at
		}
		if c.next < len(c.jobs) && (c.ends.Len() == 0 || c.arrival(c.next).Before(next)) {
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

// over says whether the replay has come to its end, given that the scheduler rests.
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
	return !now.Before(c.progress.Add(c.longest+patience)) || c.ends.Len() == 0 &&
		(c.unbound == 0 || !now.Before(c.progress.Add(patience)))
}
