package coscheduling

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/plan/account"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/status"
	"berth.dev/berth/pkg/gang/waiting"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/wellknown"
)

// feed hands what informers tell to the owners of state.
type feed struct {
	ctx    context.Context
	c      *coordinator
	client clientset.Interface
	// told are the handlers that have to be told of what there is at the start.
	told []cache.DoneChecker
	// ending is held while a member's end is told and its place given away. Two informers tell of it, and the second
	// must not give the place away before what the first has heard from the ledger is done.
	ending sync.Mutex
	// ends holds the labels by which further pods that have ended are watched.
	endsMu sync.Mutex
	ends   map[string]bool
}

func newFeed(ctx context.Context, c *coordinator, client clientset.Interface) *feed {
	return &feed{ctx: ctx, c: c, client: client, ends: map[string]bool{}}
}

// run registers the handlers and starts what runs beside the scheduling cycles.
func (c *coordinator) run(ctx context.Context, profile framework.Framework, groups cache.SharedIndexInformer,
	groupClient *restclient.RESTClient) error {
	client := profile.ClientSet()
	c.feed = newFeed(ctx, c, client)
	f := c.feed
	c.told.recorder = profile.EventRecorder()
	factory := profile.SharedInformerFactory()
	c.members.Lister = factory.Core().V1().Pods().Lister()
	c.planner.Storage = account.NewStorageListers(factory)
	c.planner.Networks = process.NetworksOf(factory)
	wide, err := process.HoldsOf(factory)
	if err != nil {
		return err
	}
	wide.KeptBy(&c.holds.Gate)
	of := &c.evictor.Sources
	of.Budgets = factory.Policy().V1().PodDisruptionBudgets().Lister()
	c.told.owners, err = status.NewOwners(ctx, profile.KubeConfig(), factory.InformerName(), c.members,
		c.told.recorder, f.applyOwner)
	if err != nil {
		return err //nolint:wrapcheck // it says what it is for
	}
	c.told.owners.FollowTrees(c.settings.owners, f.refile)
	if err := c.told.owners.FollowCore(factory); err != nil {
		return err //nolint:wrapcheck // it says what it is for
	}
	of.Owners, c.holds.Gate.Owners = c.told.owners, c.told.owners
	if err := f.watchGroups(factory, groups); err != nil {
		return err
	}
	if err := f.watchCluster(profile); err != nil {
		return err
	}
	informers.Await(factory, c.loop.Opened)
	c.told.status.Start(ctx, status.Client{Groups: groupClient, Pods: client,
		Owners: c.told.owners}, c.told.recorder, f.told)
	return nil
}

func (f *feed) watchGroups(factory kubeinformers.SharedInformerFactory, groups cache.SharedIndexInformer) error {
	if err := f.watch(factory, groups, informers.Events(f.seeGroup, f.loseGroup)); err != nil {
		return fmt.Errorf("watching PodGroups: %w", err)
	}
	for _, label := range read.Labels() {
		finished := status.NewEndedInformer(f.client, label)
		informers.Run(factory, finished)
		f.c.members.AddFinished(finished.GetStore())
		if err := f.watch(factory, finished, f.finished()); err != nil {
			return fmt.Errorf("watching finished pods: %w", err)
		}
	}
	return nil
}

// watch hands what an informer tells to a handler, which is told of all that there is before gangs are looked at.
func (f *feed) watch(factory kubeinformers.SharedInformerFactory, informer cache.SharedInformer,
	handler cache.ResourceEventHandler) error {
	told, err := informers.Handle(factory, informer, handler)
	if err != nil {
		return err //nolint:wrapcheck // the caller says what it watches
	}
	f.told = append(f.told, told.HasSyncedChecker())
	return nil
}

// finished handles pods that have ended.
func (f *feed) finished() cache.ResourceEventHandler {
	return informers.Events(func(_, pod *v1.Pod) { f.seeEnded(pod) }, f.forget)
}

func (f *feed) watchCluster(profile framework.Framework) error {
	factory := profile.SharedInformerFactory()
	pods := informers.Events(func(old, pod *v1.Pod) {
		if old != nil {
			f.c.held.See(old, pod)
		}
		bound := pod.Spec.NodeName != ""
		if !bound {
			f.seePod(pod) // of others the scheduler's cache tells, after the account of free capacity
		}
		switch {
		case bound && (old == nil || old.Spec.NodeName == ""):
			f.c.loop.Inbox.Arrive(pod)
		case old == nil:
			f.c.wakeGroup(f.ctx, pod)
		}
		if old != nil && bound {
			f.c.told.doubt(old, pod, pod)
		}
	}, f.losePod)
	if err := f.watch(factory, factory.Core().V1().Pods().Informer(), pods); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	nodes := informers.Events(func(_, node *v1.Node) { f.seeHardware(node) },
		func(node *v1.Node) { f.c.hardware.see(node.Name, "") })
	if err := f.watch(factory, factory.Core().V1().Nodes().Informer(), nodes); err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	return f.watchMeans(profile)
}

// watchMeans watches what members may need besides room on a node: a gang that needs the kind is tried again when one
// comes or changes.
func (f *feed) watchMeans(profile framework.Framework) error {
	factory := profile.SharedInformerFactory()
	storage, core, resource := factory.Storage().V1(), factory.Core().V1(), factory.Resource().V1()
	type means struct {
		kind     waiting.Needs
		informer cache.SharedInformer
	}
	all := []means{
		{waiting.NeedsEvictions, factory.Policy().V1().PodDisruptionBudgets().Informer()},
		{waiting.NeedsVolumes, core.PersistentVolumes().Informer()},
		{waiting.NeedsVolumes, core.PersistentVolumeClaims().Informer()},
		{waiting.NeedsVolumes, storage.StorageClasses().Informer()},
		{waiting.NeedsVolumes, storage.CSINodes().Informer()},
		{waiting.NeedsVolumes, storage.CSIStorageCapacities().Informer()},
	}
	if profile.SharedDRAManager() != nil {
		all = append(all, means{waiting.NeedsDevices, resource.ResourceClaims().Informer()},
			means{waiting.NeedsDevices, resource.ResourceSlices().Informer()},
			means{waiting.NeedsDevices, resource.DeviceClasses().Informer()})
	}
	for _, m := range all {
		touch := func(obj metav1.Object) { f.touch(m.kind, obj) }
		handler := informers.Events(func(_, obj metav1.Object) { touch(obj) }, touch)
		if err := f.watch(factory, m.informer, handler); err != nil {
			return fmt.Errorf("watching what pods need: %w", err)
		}
	}
	return nil
}

// touch tells the loop that something of the kind came, changed or went.
func (f *feed) touch(kind waiting.Needs, obj metav1.Object) {
	what := waiting.Happening{Kind: kind}
	switch obj.(type) {
	case *v1.PersistentVolumeClaim:
		what.Namespace = obj.GetNamespace() // it is of use to no other
	case *resourcev1.DeviceClass:
		f.c.headroom.Feed.ClassesChanged()
	}
	f.c.loop.Inbox.Happened(what)
}

// roleKeys are the annotations of a PodGroup that say what roles members have.
var roleKeys = []string{wellknown.RoleLabelKey, wellknown.GroupsKey, wellknown.GroupLabelKey}

// seeGroup tells of a PodGroup that came, for which old is nil, or that changed.
func (f *feed) seeGroup(old, pg *schedulingv1alpha1.PodGroup) {
	id := gang.ID{Namespace: pg.Namespace, Name: pg.Name}
	now := time.Now()
	if read.Generated(pg) {
		// It says what the members' labels say, only later.
		f.c.effects.Apply(f.ctx, f.c.ledger.Undefine(id, gang.Object, now))
		f.c.told.status.EnqueueGenerated(id)
	} else if spec, err := read.Spec(pg, f.c.settings.timeout); err != nil {
		f.c.effects.Apply(f.ctx, f.c.ledger.Undefine(id, gang.Object, now))
		f.c.ledger.Note(id, err.Error())
	} else {
		f.c.ledger.Note(id, "")
		f.c.effects.Apply(f.ctx, f.c.ledger.Define(id, gang.Object, spec, now))
	}
	f.seeRoles(id, old, pg)
	f.c.effects.Apply(f.ctx, f.c.ledger.Recall(id, status.PastOf(pg), now))
	f.seePlacement(id, old, pg)
	if old != nil {
		f.c.told.doubt(old, pg, status.ReferenceTo(pg))
	}
}

func (f *feed) loseGroup(pg *schedulingv1alpha1.PodGroup) {
	id := gang.ID{Namespace: pg.Namespace, Name: pg.Name}
	f.c.effects.Apply(f.ctx, f.c.ledger.Undefine(id, gang.Object, time.Now()))
	f.seePlacement(id, pg, nil)
	f.seeRoles(id, pg, nil)
	f.c.told.status.Enqueue(id)
}

// seePlacement has the gang tried again if its PodGroup, which was or is nil, says something else of where members may
// be. The ledger knows only what PodGroups say that define a gang: those that stand in for labels do not, nor do those
// that cannot be read.
func (f *feed) seePlacement(id gang.ID, old, pg *schedulingv1alpha1.PodGroup) {
	if read.Placement(old) != read.Placement(pg) {
		f.c.effects.Apply(f.ctx, f.c.ledger.Reconsider(id, time.Now()))
		f.wakeJoining(f.ctx, id)
	}
}

// seeRoles looks at the members again if the PodGroup, which was or is nil, says something else of their roles.
func (f *feed) seeRoles(id gang.ID, old, pg *schedulingv1alpha1.PodGroup) {
	before, now := cmp.Or(old, &schedulingv1alpha1.PodGroup{}), cmp.Or(pg, &schedulingv1alpha1.PodGroup{})
	if slices.ContainsFunc(roleKeys, func(key string) bool { return before.Annotations[key] != now.Annotations[key] }) {
		f.seeMembers(id)
		f.c.loop.Inbox.Happened(waiting.Happening{Only: id})
	}
}

// seeMembers looks at the members of a gang again.
func (f *feed) seeMembers(id gang.ID) {
	for _, ref := range f.c.ledger.Members(id) {
		if pod := f.c.members.Any(ref); pod != nil {
			f.seeMember(pod)
		}
	}
}

// seePod tells of a pod as it is now: the scheduler's cache may have told of its end before.
func (f *feed) seePod(told *v1.Pod) {
	pod := f.c.members.Pod(read.RefOf(told))
	if pod == nil {
		return
	}
	f.seeMember(pod)
	f.c.told.status.Pods.See(pod)
	if pod.Spec.NodeName == "" && pod.Status.NominatedNodeName != "" {
		if id := f.c.members.ID(pod); id != (gang.ID{}) {
			f.c.told.status.Enqueue(id)
		}
	}
}

// seeEnded tells the ledger of a member that has ended.
func (f *feed) seeEnded(pod *v1.Pod) {
	f.ending.Lock()
	defer f.ending.Unlock()
	f.seeMember(pod)
}

// seeMember tells the ledger of a member, and of a pod that is none any more. That a member is bound the ledger hears
// after the account of free capacity.
func (f *feed) seeMember(pod *v1.Pod) {
	if pod.Spec.NodeName != "" && !podview.Finished(pod) && f.c.headroom.Cluster.Pod(pod.UID) == nil {
		return
	}
	of, err := f.c.members.Of(pod)
	if err != nil || of.ID == (gang.ID{}) {
		// It is woken if its gang held it, as nothing does any more.
		f.forget(pod)
		return
	}
	if f.c.told.owners.Outlived(of.Owner, pod) {
		f.disown(gang.UID(pod.UID))
		return
	}
	group := f.c.members.Group(of.ID)
	member := read.Member(pod, of, group, f.c.profiles.Of(pod) != nil)
	member.Precedence = f.c.settings.classes.precedence(pod, group)
	f.c.effects.Apply(f.ctx, f.c.ledger.Observe(of.ID, member, time.Now()))
	if of.FollowEnded {
		f.followEnded(of.EndedLabel)
	}
	if of.Owner.Kind != "" {
		f.c.told.owners.Follow(f.ctx, of.Owner, f.c.ledger.Unspecified(of.ID))
	}
	if f.c.members.ID(pod) != of.ID {
		// The tree of its group became known meanwhile, to refile before the ledger knew the member.
		f.seeMember(pod)
	}
}

func (f *feed) losePod(pod *v1.Pod) {
	f.c.told.status.Pods.Forget(pod)
	f.c.holds.Gate.Away.Forget(gang.UID(pod.UID))
	f.c.backlog.Gone(pod.UID)
	f.ending.Lock()
	defer f.ending.Unlock()
	defer f.c.loop.Inbox.Look()
	if ended := f.c.members.Ended(pod.Namespace, pod.Name); ended != nil && ended.UID == pod.UID {
		// Not gone but finished: the other informer knows it already, but may not have told so yet.
		f.seeMember(ended)
		return
	}
	f.forget(pod)
}

func (f *feed) forget(pod *v1.Pod) {
	f.c.effects.Apply(f.ctx, f.c.ledger.Forget(gang.UID(pod.UID), time.Now()))
}
