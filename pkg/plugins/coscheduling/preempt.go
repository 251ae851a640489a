package coscheduling

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/kubeview"
)

// evictionGrace is how long victims may take from being chosen to being marked for deletion before others are chosen.
const evictionGrace = 30 * time.Second

// wave is the eviction of pods for one gang, all at once.
type wave struct {
	p    *Plugin
	id   gang.ID
	turn gang.Turn
	// below is the priority that pods need to be safe.
	below int32
	nodes []fwk.NodeInfo
	// going are pods that leave anyway, evictable those that may be made to.
	going     []seatedPod
	evictable []gang.Victim
	pods      map[gang.UID]seatedPod
}

// preempt evicts exactly the pods without which the whole gang can start, all in one wave, or none at all. It returns
// what to say about it, or nothing if eviction does not help.
func (p *Plugin) preempt(ctx context.Context, id gang.ID, turn gang.Turn) (string, error) {
	nodes, err := p.framework.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return "", fmt.Errorf("listing nodes: %w", err)
	}
	w := &wave{p: p, id: id, turn: turn, nodes: nodes, pods: map[gang.UID]seatedPod{}, below: turn.Members[0].Priority}
	for _, m := range turn.Members {
		w.below = min(w.below, m.Priority)
		pod := p.shared.pod(m.Ref())
		if pod == nil {
			return "", nil
		}
		if policy := pod.Spec.PreemptionPolicy; policy != nil && *policy == v1.PreemptNever {
			return "", nil
		}
	}
	w.collect()
	if len(w.evictable) == 0 && len(w.going) == 0 {
		return "", nil
	}
	if len(w.going) > 0 {
		if _, ok, err := w.try(ctx, nil, nil); err != nil || ok {
			return fmt.Sprintf("waiting for %d pods to terminate", len(w.going)), err
		}
	}
	if p.shared.evicting(id) {
		return "waiting for pods to be evicted", nil
	}
	victims, seats, err := w.choose(ctx)
	if err != nil || len(victims) == 0 {
		return "", err
	}
	p.shared.evict(ctx, p, id, victims, seats)
	return fmt.Sprintf("evicting %d pods of lower priority", len(victims)), nil
}

// collect sorts the pods of all nodes into those that are going, those that may be evicted, and the rest.
func (w *wave) collect() {
	for _, n := range w.nodes {
		for _, info := range n.GetPods() {
			pod := info.GetPod()
			s := seatedPod{info: info, node: n.Node().Name}
			if pod.DeletionTimestamp != nil {
				w.going = append(w.going, s)
				continue
			}
			priority := corev1helpers.PodPriority(pod)
			if w.p.shared.backfills(w.id, pod, s.node) {
				// It runs in room that is kept for this very gang.
				priority = math.MinInt32
			}
			if priority >= w.below {
				continue
			}
			// A pod that is only assumed is on its way; it is not worth stopping, nor can it be evicted through the API.
			ref := gang.Ref{UID: gang.UID(pod.UID), Namespace: pod.Namespace, Name: pod.Name}
			known := w.p.shared.pod(ref)
			if known == nil || known.Spec.NodeName == "" {
				continue
			}
			v := gang.Victim{UID: ref.UID, Node: s.node, Priority: priority, Started: pod.CreationTimestamp.Time}
			if pod.Status.StartTime != nil {
				v.Started = pod.Status.StartTime.Time
			}
			if isMember(pod) {
				v.Group, _, _ = kubeview.GangOf(pod)
			}
			w.evictable = append(w.evictable, v)
			w.pods[ref.UID] = s
		}
	}
}

// try seats the gang with the given units gone, on the cheapest nodes first if prices are given.
func (w *wave) try(ctx context.Context, gone []gang.Unit, prices map[string]gang.Price) (map[gang.UID]string, bool, error) {
	if w.lack(gone) {
		return nil, false, nil
	}
	arranged, err := w.p.shared.arrange(ctx, w.id, w.turn, w.nodes, func(b *board) error {
		b.price(prices)
		for _, s := range w.going {
			if err := b.remove(s); err != nil {
				return err
			}
		}
		for i := range gone {
			for _, v := range gone[i].Victims {
				if err := b.remove(w.pods[v.UID]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	return arranged.Seats, arranged.Feasible(), nil
}

// choose returns the pods to evict and the seats of the gang once they are gone.
func (w *wave) choose(ctx context.Context) ([]gang.Victim, map[gang.UID]string, error) {
	budgets, err := w.p.shared.budgets.List(labels.Everything())
	if err != nil {
		return nil, nil, fmt.Errorf("listing PodDisruptionBudgets: %w", err)
	}
	standing := func(id gang.ID) (int, int) {
		v, _ := w.p.shared.ledger.View(id)
		return v.MinMember, v.Settled()
	}
	units := gang.Units(w.protect(budgets), w.below, standing)
	if len(units) == 0 {
		return nil, nil, nil
	}
	prices := gang.Prices(units)
	seats, ok, err := w.try(ctx, units, prices)
	if err != nil || !ok {
		return nil, nil, err
	}
	used := map[string]bool{}
	for _, node := range seats {
		used[node] = true
	}
	chosen := map[int]bool{}
	for i := range units {
		for _, v := range units[i].Victims {
			if used[v.Node] {
				chosen[i] = true
			}
		}
	}
	pick := func(c map[int]bool) []gang.Unit {
		var out []gang.Unit
		for i := range units {
			if c[i] {
				out = append(out, units[i])
			}
		}
		return out
	}
	chosen = gang.Closed(units, chosen)
	// What has to be free besides the seats may lie on any node.
	for _, i := range slices.Backward(gang.ByImportanceOfUnits(units)) {
		if !w.lack(pick(chosen)) {
			break
		}
		chosen[i] = true
		chosen = gang.Closed(units, chosen)
	}
	chosen = gang.Spare(units, chosen, func(c map[int]bool) bool {
		_, ok, tryErr := w.try(ctx, pick(c), prices)
		if tryErr != nil {
			err = tryErr
		}
		return ok
	})
	if err != nil {
		return nil, nil, err
	}
	seats, ok, err = w.try(ctx, pick(chosen), prices)
	if err != nil || !ok {
		return nil, nil, err
	}
	var victims []gang.Victim
	for _, u := range pick(chosen) {
		victims = append(victims, u.Victims...)
		if u.Whole {
			gangsPreempted.Inc()
		}
	}
	return victims, seats, nil
}

// protect leaves out pods whose eviction a PodDisruptionBudget does not allow. A budget that allows some evictions gives
// up the least important of its pods.
func (w *wave) protect(budgets []*policyv1.PodDisruptionBudget) []gang.Victim {
	kept := gang.ByImportance(w.evictable)
	for _, budget := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || selector.Empty() {
			continue
		}
		allowed := int(budget.Status.DisruptionsAllowed)
		var left []gang.Victim
		for _, v := range kept {
			pod := w.pods[v.UID].info.GetPod()
			if pod.Namespace == budget.Namespace && selector.Matches(labels.Set(pod.Labels)) {
				if allowed--; allowed < 0 {
					continue
				}
			}
			left = append(left, v)
		}
		kept = left
	}
	return kept
}

// eviction is what was done for a gang: the victims, and until when they have to be on their way.
type eviction struct {
	victims []gang.Ref
	until   time.Time
}

// evicting reports whether pods were chosen for the gang that are still there and may not be marked yet.
func (c *coordinator) evicting(id gang.ID) bool {
	c.mu.RLock()
	e := c.evictions[id]
	c.mu.RUnlock()
	return time.Now().Before(e.until) && slices.ContainsFunc(e.victims, func(r gang.Ref) bool { return c.pod(r) != nil })
}

// evict keeps the seats for the gang and evicts the victims in the background.
func (c *coordinator) evict(ctx context.Context, p *Plugin, id gang.ID, victims []gang.Victim, seats map[gang.UID]string) {
	logger := klog.FromContext(ctx)
	e := eviction{until: time.Now().Add(evictionGrace)}
	pods := make([]*v1.Pod, 0, len(victims))
	for _, v := range victims {
		if pod := c.podByUID(p, v); pod != nil {
			pods = append(pods, pod)
			e.victims = append(e.victims, gang.Ref{UID: v.UID, Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	c.mu.Lock()
	c.evictions[id] = e
	c.nominated[id] = seats
	c.mu.Unlock()
	logger.V(2).Info("Evicting pods for a gang", "gang", id, "victims", len(pods))
	// The cycle's context ends with it.
	ctx = context.WithoutCancel(ctx)
	go func() {
		failed := false
		for _, pod := range pods {
			if err := c.evictOne(ctx, p, pod, id); err != nil {
				logger.Error(err, "Evicting a pod failed", "pod", klog.KObj(pod), "gang", id)
				failed = true
			}
		}
		c.nominate(logger, p, id)
		if failed {
			c.mu.Lock()
			delete(c.evictions, id)
			c.mu.Unlock()
		}
		c.roomMade()
	}()
}

// podByUID finds a victim in the snapshot of the cycle.
func (c *coordinator) podByUID(p *Plugin, v gang.Victim) *v1.Pod {
	n, err := p.framework.SnapshotSharedLister().NodeInfos().Get(v.Node)
	if err != nil {
		return nil
	}
	for _, info := range n.GetPods() {
		if gang.UID(info.GetPod().UID) == v.UID {
			return info.GetPod()
		}
	}
	return nil
}

func (c *coordinator) evictOne(ctx context.Context, p *Plugin, pod *v1.Pod, id gang.ID) error {
	status := pod.Status.DeepCopy()
	podutil.UpdatePodCondition(status, &v1.PodCondition{
		Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler,
		Message: fmt.Sprintf("%s: making room for gang %s of higher priority", pod.Spec.SchedulerName, id)})
	if err := util.PatchPodStatus(ctx, p.framework.ClientSet(), pod.Name, pod.Namespace, &pod.Status, status); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("marking pod %s: %w", klog.KObj(pod), err)
	}
	if err := util.DeletePod(ctx, p.framework.ClientSet(), pod); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting pod %s: %w", klog.KObj(pod), err)
	}
	podsPreempted.Inc()
	p.framework.EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(pod, nil, v1.EventTypeNormal, "Preempted", "Preempting", "Preempted by gang %s on node %s", id, pod.Spec.NodeName)
	return nil
}

// nominate keeps the seats of a gang from pods of its priority or less while the victims leave.
func (c *coordinator) nominate(logger klog.Logger, p *Plugin, id gang.ID) {
	c.mu.RLock()
	seats := c.nominated[id]
	c.mu.RUnlock()
	for uid, node := range seats {
		ref, ok := c.ledger.Find(uid)
		pod := c.pod(ref)
		if !ok || pod == nil || pod.Spec.NodeName != "" {
			continue
		}
		if info, err := framework.NewPodInfo(pod); err == nil {
			p.framework.AddNominatedPod(logger, info, &fwk.NominatingInfo{NominatedNodeName: node, NominatingMode: fwk.ModeOverride})
		}
	}
}

// unnominate gives up what was kept for a gang.
func (c *coordinator) unnominate(p *Plugin, id gang.ID) {
	c.mu.Lock()
	seats := c.nominated[id]
	delete(c.nominated, id)
	delete(c.evictions, id)
	c.mu.Unlock()
	for uid := range seats {
		if ref, ok := c.ledger.Find(uid); ok {
			if pod := c.pod(ref); pod != nil {
				p.framework.DeleteNominatedPodIfExists(pod)
			}
		}
	}
	if len(seats) > 0 {
		// Two gangs may have kept the same room from each other.
		c.roomMade()
	}
}
