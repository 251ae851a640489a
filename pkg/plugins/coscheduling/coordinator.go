package coscheduling

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/kubeview"
)

// coordinator is what all profiles of one process share: the ledger, the informers that feed it, and the loop that
// wakes gangs. It lives in the PodGroup informer of the process's informer factory, which every profile can reach and
// of which there is exactly one.
type coordinator struct {
	settings settings
	ledger   *gang.Ledger
	pods     corelisters.PodLister
	client   *podGroupClient
	status   *statusWriter
	room     *kubeview.Room
	// finished hold the members that have ended, by namespace/name.
	finished []cache.Store
	start    sync.Once
	startErr error
	// kick makes the wake loop look at once; roomAt is when room was last made, in nanoseconds since 1970.
	kick   chan struct{}
	roomAt atomic.Int64

	budgets policylisters.PodDisruptionBudgetLister
	// reserved is the reservation in force, or nil.
	reserved atomic.Pointer[reservation]
	// hadTurn holds until when gangs whose reservation ran out get no other; only the wake loop uses it.
	hadTurn map[gang.ID]time.Time

	mu       sync.RWMutex
	profiles map[string]framework.Framework
	// nominated holds the seats that are kept for gangs for which pods were evicted.
	nominated map[gang.ID]map[gang.UID]string
	evictions map[gang.ID]eviction
}

// coordinatorOf returns the coordinator of the process and makes the profile known to it.
func coordinatorOf(ctx context.Context, profile framework.Framework, s settings) (*coordinator, error) {
	client, err := newPodGroupClient(profile.KubeConfig())
	if err != nil {
		return nil, err
	}
	factory := profile.SharedInformerFactory()
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	informer, ok := factory.InformerFor(&schedulingv1alpha1.PodGroup{}, func(cs clientset.Interface, resync time.Duration) cache.SharedIndexInformer {
		status := newStatusWriter()
		return &sharedInformer{
			SharedIndexInformer: cache.NewSharedIndexInformer(podGroupLister{client: client}, &schedulingv1alpha1.PodGroup{}, resync, byNamespace),
			finished:            newFinishedInformers(cs, resync),
			coordinator: &coordinator{
				settings: s,
				ledger:   gang.NewLedger(s.timeout, status.mark),
				status:   status,
				client:   client,
				room:     kubeview.NewRoom(),
				kick:     make(chan struct{}, 1),
				profiles: map[string]framework.Framework{},

				hadTurn:   map[gang.ID]time.Time{},
				nominated: map[gang.ID]map[gang.UID]string{},
				evictions: map[gang.ID]eviction{},
			},
		}
	}).(*sharedInformer)
	if !ok {
		return nil, fmt.Errorf("watching PodGroups: the informer factory has another informer for them")
	}
	c := informer.coordinator
	c.mu.Lock()
	c.profiles[profile.ProfileName()] = profile
	c.mu.Unlock()
	c.start.Do(func() { c.startErr = c.run(ctx, profile, informer) })
	return c, c.startErr
}

// run registers the handlers that feed the ledger and starts the wake loop.
func (c *coordinator) run(ctx context.Context, profile framework.Framework, groups *sharedInformer) error {
	factory := profile.SharedInformerFactory()
	pods := factory.Core().V1().Pods()
	c.pods = pods.Lister()
	c.budgets = factory.Policy().V1().PodDisruptionBudgets().Lister()
	groupsSeen, err := groups.AddEventHandler(handlers(
		func(pg *schedulingv1alpha1.PodGroup) { c.seeGroup(ctx, pg) },
		func(_, pg *schedulingv1alpha1.PodGroup) { c.seeGroup(ctx, pg) },
		func(pg *schedulingv1alpha1.PodGroup) { c.loseGroup(ctx, pg) }))
	if err != nil {
		return fmt.Errorf("watching PodGroups: %w", err)
	}
	podsSeen, err := pods.Informer().AddEventHandler(handlers(
		func(pod *v1.Pod) { c.seePod(ctx, pod) },
		func(old, pod *v1.Pod) {
			if old.UID != pod.UID {
				c.losePod(ctx, old)
			}
			c.seePod(ctx, pod)
		},
		func(pod *v1.Pod) { c.losePod(ctx, pod) }))
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	seen := []cache.ResourceEventHandlerRegistration{groupsSeen, podsSeen}
	if _, err := factory.Core().V1().Nodes().Informer().AddEventHandler(handlers(
		func(node *v1.Node) {
			c.room.SetNode(node)
			c.roomMade()
		},
		func(old, node *v1.Node) {
			c.room.SetNode(node)
			if len(framework.NodeSchedulingPropertiesChange(node, old)) > 0 {
				c.roomMade()
			}
		},
		func(node *v1.Node) { c.room.DropNode(node.Name) })); err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	for _, finished := range groups.finished {
		c.finished = append(c.finished, finished.GetStore())
		finishedSeen, err := finished.AddEventHandler(handlers(
			func(pod *v1.Pod) { c.seePod(ctx, pod) },
			func(_, pod *v1.Pod) { c.seePod(ctx, pod) },
			func(pod *v1.Pod) { c.forget(ctx, pod) }))
		if err != nil {
			return fmt.Errorf("watching finished pods: %w", err)
		}
		seen = append(seen, finishedSeen)
	}
	s := c.status
	s.ledger, s.groups, s.client, s.recorder, s.store = c.ledger, c.client, profile.ClientSet(), profile.EventRecorder(), groups.GetStore()
	s.pod, s.anyPod = c.pod, c.anyPod
	s.synced = func() bool {
		return !slices.ContainsFunc(seen, func(r cache.ResourceEventHandlerRegistration) bool { return !r.HasSynced() })
	}
	go s.run(ctx)
	go c.wake(ctx)
	return nil
}

// handlers are informer handlers for objects of one type, tombstones included.
func handlers[T any](add func(T), update func(old, obj T), remove func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if t, ok := obj.(T); ok {
				add(t)
			}
		},
		UpdateFunc: func(old, obj any) {
			o, ok1 := old.(T)
			t, ok2 := obj.(T)
			if ok1 && ok2 {
				update(o, t)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if t, ok := obj.(T); ok {
				remove(t)
			}
		},
	}
}

func (c *coordinator) seeGroup(ctx context.Context, pg *schedulingv1alpha1.PodGroup) {
	id := gang.ID{Namespace: pg.Namespace, Name: pg.Name}
	if kubeview.IsStandIn(pg) {
		// It says what the members' labels say, only later.
		c.carryOut(ctx, c.ledger.Undefine(id, time.Now()))
		c.status.hurry(id)
		return
	}
	c.carryOut(ctx, c.ledger.Define(id, kubeview.GangSpec(pg, c.settings.timeout), time.Now()))
}

func (c *coordinator) loseGroup(ctx context.Context, pg *schedulingv1alpha1.PodGroup) {
	id := gang.ID{Namespace: pg.Namespace, Name: pg.Name}
	c.carryOut(ctx, c.ledger.Undefine(id, time.Now()))
	c.status.mark(id)
}

func (c *coordinator) seePod(ctx context.Context, pod *v1.Pod) {
	if pod.Spec.NodeName != "" {
		c.room.SetPod(pod)
	}
	if !isMember(pod) {
		return
	}
	id, _, err := kubeview.GangOf(pod)
	if err != nil {
		return
	}
	c.carryOut(ctx, c.ledger.Observe(id, kubeview.GangMember(pod, c.profile(pod) != nil), time.Now()))
}

func (c *coordinator) losePod(ctx context.Context, pod *v1.Pod) {
	if pod.Spec.NodeName != "" {
		c.room.DropPod(pod.UID)
		c.roomMade()
	}
	if ended := c.ended(pod.Namespace, pod.Name); ended != nil && ended.UID == pod.UID {
		// Not gone but finished: the other informer has told so already.
		return
	}
	c.forget(ctx, pod)
}

func (c *coordinator) forget(ctx context.Context, pod *v1.Pod) {
	if isMember(pod) {
		c.carryOut(ctx, c.ledger.Forget(gang.UID(pod.UID), time.Now()))
	}
}

// pod returns the member as the scheduler's informer has it, or nil if it is another one by now.
func (c *coordinator) pod(r gang.Ref) *v1.Pod {
	pod, err := c.pods.Pods(r.Namespace).Get(r.Name)
	if err != nil || gang.UID(pod.UID) != r.UID {
		return nil
	}
	return pod
}

// anyPod returns the member, also if it has ended, or nil.
func (c *coordinator) anyPod(r gang.Ref) *v1.Pod {
	if pod := c.pod(r); pod != nil {
		return pod
	}
	if pod := c.ended(r.Namespace, r.Name); pod != nil && gang.UID(pod.UID) == r.UID {
		return pod
	}
	return nil
}

// ended returns the member of that name that has ended, or nil.
func (c *coordinator) ended(namespace, name string) *v1.Pod {
	for _, store := range c.finished {
		if obj, exists, err := store.GetByKey(namespace + "/" + name); err == nil && exists {
			return obj.(*v1.Pod)
		}
	}
	return nil
}

// profile returns the profile that schedules the pod, or nil if another scheduler does.
func (c *coordinator) profile(pod *v1.Pod) framework.Framework {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.profiles[pod.Spec.SchedulerName]
}

// anyProfile returns one of the profiles: the queue and the waiting pods are the same behind all of them.
func (c *coordinator) anyProfile() framework.Framework {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, p := range c.profiles {
		return p
	}
	return nil
}

// carryOut does what the ledger asks for. It must not be called under the queue's lock.
func (c *coordinator) carryOut(ctx context.Context, e gang.Effects) {
	if e.Empty() {
		return
	}
	if e.Started {
		gangWait.Observe(e.Waited.Seconds())
	}
	profile := c.anyProfile()
	for _, r := range e.Allow {
		c.deliver(ctx, profile, r, func(w fwk.WaitingPod) { w.Allow(Name) }, true)
	}
	for _, r := range e.Reject {
		c.deliver(ctx, profile, r, func(w fwk.WaitingPod) { w.Reject(Name, e.Reason) }, false)
	}
	if len(e.Activate) == 0 {
		return
	}
	pods := make(map[string]*v1.Pod, len(e.Activate))
	for _, r := range e.Activate {
		if pod := c.pod(r); pod != nil {
			pods[r.Namespace+"/"+r.Name] = pod
		}
	}
	if len(pods) > 0 {
		profile.Activate(klog.FromContext(ctx), pods)
	}
}

// deliver tells a waiting pod to go or to leave. A pod that was told to wait becomes a waiting pod a moment later, so
// that a word that comes in between is repeated until the pod is there or does not hold its seat any more.
func (c *coordinator) deliver(ctx context.Context, profile framework.Framework, r gang.Ref, tell func(fwk.WaitingPod), allow bool) {
	if w := profile.GetWaitingPod(types(r.UID)); w != nil {
		tell(w)
		return
	}
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if w := profile.GetWaitingPod(types(r.UID)); w != nil {
				tell(w)
				return
			}
			if held, allowed := c.ledger.Holding(r.UID); !held || allowed != allow {
				return
			}
		}
	}()
}
