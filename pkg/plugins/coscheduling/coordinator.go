package coscheduling

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/kubeview"
)

// coordinator is what all profiles of one process share. It wires the owners of state to each other and to the informers;
// the state is theirs: the ledger's of gangs, the headroom's of capacity, the waker's of who is tried next, the evictor's of
// evictions, the promises' of what is kept for whom, the status writer's of what was written.
type coordinator struct {
	settings settings
	ledger   *gang.Ledger
	members  members
	profiles *profiles
	pods     *memberPods
	groups   *podGroups
	headroom *headroom
	promises *promises
	carrier  *carrier
	evictor  *evictor
	waker    *waker
	owners   *ownerFollower
	status   *statusWriter
	recorder events.EventRecorderLogger
	start    sync.Once
	startErr error
}

// coordinatorOf returns the coordinator of the process and makes the profile known to it.
func coordinatorOf(ctx context.Context, profile framework.Framework, s settings) (*coordinator, error) {
	client, err := newPodGroupClient(profile.KubeConfig())
	if err != nil {
		return nil, err
	}
	informer, ok := profile.SharedInformerFactory().InformerFor(&schedulingv1alpha1.PodGroup{}, func(cs clientset.Interface, resync time.Duration) cache.SharedIndexInformer {
		byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		groups := cache.NewSharedIndexInformer(podGroupLister{client: client}, &schedulingv1alpha1.PodGroup{}, resync, byNamespace)
		return &sharedInformer{
			SharedIndexInformer: groups,
			finished:            newFinishedInformers(cs, resync),
			coordinator:         newCoordinator(s, &podGroups{client: client, store: groups.GetStore()}),
		}
	}).(*sharedInformer)
	if !ok {
		return nil, fmt.Errorf("watching PodGroups: the informer factory has another informer for them")
	}
	c := informer.coordinator
	c.profiles.add(profile)
	c.start.Do(func() { c.startErr = c.run(ctx, profile, informer) })
	return c, c.startErr
}

// newCoordinator wires the parts that know nothing of informers.
func newCoordinator(s settings, groups *podGroups) *coordinator {
	c := &coordinator{settings: s, groups: groups, members: members{policy: s.owners}, profiles: &profiles{}, pods: &memberPods{}}
	c.status = newStatusWriter()
	c.waker = newWaker()
	c.ledger = gang.NewLedger(s.timeout, func(id gang.ID) {
		c.status.mark(id)
		c.waker.mark(id)
	})
	c.headroom = newHeadroom(func(name v1.ResourceName) bool {
		profile := c.profiles.one()
		return profile != nil && claimed(profile, name)
	})
	c.carrier = &carrier{ledger: c.ledger, profiles: c.profiles, pods: c.pods, lost: c.keepForReturn}
	c.promises = &promises{members: c.members, allowsBackfill: c.allowsBackfill}
	return c
}

// allowsBackfill reports whether the pod may use what is promised to a gang for its turn.
func (c *coordinator) allowsBackfill(pod *v1.Pod) bool {
	return kubeview.MayBackfill(c.groups.get(c.members.id(pod)), pod)
}

// keepForReturn promises the room of a member that was lost to its gang, so that its replacement finds it.
func (c *coordinator) keepForReturn(loss gang.Loss) {
	pod := c.pods.any(loss.Member)
	if c.settings.recovery == 0 || pod == nil || preemptedByScheduler(pod) {
		return
	}
	info, err := infoOf(pod)
	v, known := c.ledger.View(loss.Group)
	if err != nil || !known {
		return
	}
	c.promises.add(promise{to: loss.Group, kind: forReturn, priority: v.Priority, node: loss.Node, info: info, until: time.Now().Add(c.settings.recovery)})
}
