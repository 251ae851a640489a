package coscheduling

import (
	"context"

	v1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Follow returns the cache that has to take the place of the scheduler's before it runs. It tells the account of free
// capacity what the scheduler's cache is told, before kube-scheduler's queue hears of it: no pod is woken for capacity
// that the account does not know yet. Synced waits until the cache has been told of all nodes and pods that there are
// at the start; only then are gangs looked at.
func Follow(profiles map[string]framework.Framework, cache internalcache.Cache,
	synced func(context.Context) error) internalcache.Cache {
	for _, profile := range profiles {
		if p := Of(profile); p != nil {
			go p.shared.begin(synced)
			return &accounted{cache, p.shared.feed}
		}
	}
	return cache
}

// begin runs the loop once all handlers have been told of what there is. Before, a gang that fits would be ruled out,
// and a pod that comes after it would be tried first.
func (c *coordinator) begin(synced func(context.Context) error) {
	ctx := c.feed.ctx
	if toolscache.WaitFor(ctx, "", c.feed.told...) && synced(ctx) == nil {
		c.loop.Run(ctx)
	}
}

// accounted is a scheduler's cache that is followed by the account of free capacity. What is assumed is not counted:
// the loop knows what plans and holds are about to take.
type accounted struct {
	internalcache.Cache
	feed *feed
}

// AddPod counts a pod that is bound.
func (a *accounted) AddPod(logger klog.Logger, pod *v1.Pod) error {
	err := a.Cache.AddPod(logger, pod)
	a.feed.accountPod(pod)
	return err //nolint:wrapcheck // the cache's own
}

// UpdatePod counts what has changed of a pod that is bound.
func (a *accounted) UpdatePod(logger klog.Logger, old, pod *v1.Pod) error {
	err := a.Cache.UpdatePod(logger, old, pod)
	a.feed.accountPod(pod)
	return err //nolint:wrapcheck // the cache's own
}

// RemovePod counts a pod out that was bound. The ledger is told before: what a lost member used is kept for its
// replacement before anything else can take it.
func (a *accounted) RemovePod(logger klog.Logger, pod *v1.Pod) error {
	a.feed.losePod(pod)
	err := a.Cache.RemovePod(logger, pod)
	a.feed.c.headroom.Feed.DropPod(pod.UID)
	a.feed.c.loop.Inbox.Look()
	return err //nolint:wrapcheck // the cache's own
}

// AddNode counts a node.
func (a *accounted) AddNode(logger klog.Logger, node *v1.Node) {
	a.Cache.AddNode(logger, node)
	a.feed.accountNode(node)
}

// UpdateNode counts what has changed of a node.
func (a *accounted) UpdateNode(logger klog.Logger, old, node *v1.Node) {
	a.Cache.UpdateNode(logger, old, node)
	a.feed.accountNode(node)
}

// RemoveNode counts a node out.
func (a *accounted) RemoveNode(logger klog.Logger, node *v1.Node) error {
	err := a.Cache.RemoveNode(logger, node)
	a.feed.c.headroom.Feed.DropNode(node.Name)
	a.feed.c.loop.Inbox.Look()
	return err //nolint:wrapcheck // the cache's own
}

func (f *feed) accountNode(node *v1.Node) {
	f.c.headroom.Feed.SetNode(node)
	f.c.loop.Inbox.Look()
}

// accountPod counts a pod that is bound. The ledger is told after the account: who may evict a gang is tried again when
// the ledger says that all of it is bound, and victims are chosen by the account.
func (f *feed) accountPod(pod *v1.Pod) {
	f.c.headroom.Feed.SetPod(pod, f.c.members.ID(pod))
	f.seePod(pod)
	f.c.backlog.Gone(pod.UID)
	f.c.loop.Inbox.Look()
}
