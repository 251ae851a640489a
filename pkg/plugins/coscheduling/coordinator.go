package coscheduling

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/hold"
	"berth.dev/berth/pkg/gang/loop"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/plan"
	"berth.dev/berth/pkg/gang/plan/sets"
	"berth.dev/berth/pkg/gang/preempt"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/starts"
	"berth.dev/berth/pkg/gang/status"
	"berth.dev/berth/pkg/gang/waiting"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/wellknown"
)

// coordinator is what all profiles of one process share. It wires the owners of state to each other and to the
// informers; the state is theirs: the ledger's of gangs, the headroom's of capacity, the list's of gangs that wait,
// the queue's of who is tried next, the evictor's of evictions, the holds' of what is kept for whom, the
// controller's of what was written.
type coordinator struct {
	settings settings
	ledger   *gang.Ledger
	members  *members.Directory
	profiles *process.Profiles
	headroom *capacity.Index
	holds    *hold.Holds
	effects  *loop.Executor
	planner  *plan.Planner
	evictor  *preempt.Evictor
	loop     *loop.Loop
	held     *loop.HeldPods
	backlog  *waiting.Backlog
	hardware hardware
	// pace knows which gang plans next where plans take long.
	pace waiting.Pace
	told told
	feed *feed
}

// coordinatorOf returns the coordinator of the process and makes the profile known to it.
func coordinatorOf(ctx context.Context, profile framework.Framework, s settings) (*coordinator, error) {
	factory := profile.SharedInformerFactory()
	c, err := informers.Shared(factory, func() (*coordinator, error) {
		groups, client, err := informers.Custom(factory, profile.KubeConfig(), status.Kind)
		if err != nil {
			return nil, err //nolint:wrapcheck // it says what it is for
		}
		read.GangsOf(factory).Follow(s.owners)
		c := newCoordinator(s, groups.GetStore(), gpuview.ProfileKeysOf(factory), informers.ElectionOf(factory))
		c.profiles.Add(profile)
		return c, c.run(ctx, profile, groups, client)
	})
	if err != nil {
		return nil, err
	}
	c.profiles.Add(profile)
	return c, nil
}

// newCoordinator wires the parts that know nothing of informers.
func newCoordinator(
	s settings, groups cache.Store, names *gpuview.ProfileKeys, election informers.Election,
) *coordinator {
	c := &coordinator{settings: s, members: &members.Directory{Policy: s.owners, Groups: groups},
		profiles: &process.Profiles{}}
	inbox := waiting.NewInbox()
	c.ledger = gang.NewLedger(s.timeout, inbox.Wake)
	c.members.Ledger = c.ledger
	c.told.election = election
	c.told.status = status.New(status.Source{Ledger: c.ledger, Members: c.members,
		Profiles: c.profiles, Classes: s.classes.order, Election: election})
	c.headroom = capacity.New(c.profiles)
	c.holds = &hold.Holds{Gate: hold.Gate{Members: c.members, Cycles: &c.ledger.Cycles,
		Profiles: c.profiles}}
	c.backlog = waiting.NewBacklog(c.headroom, &c.holds.Gate, c.members)
	c.holds.Gate.Away.Backlog, c.holds.Gate.Away.Inbox = c.backlog, inbox
	c.held = loop.NewHeldPods(c.holder, c.backlog, inbox)
	c.evictor = &preempt.Evictor{Profiles: c.profiles, Members: c.members, Capacity: c.headroom, Ledger: c.ledger,
		Holds: c.holds, Sources: preempt.Sources{Loss: &preempt.Loss{Limits: s.limits, GPUs: names,
			Members: c.members}}, Inbox: inbox}
	c.planner = &plan.Planner{Sources: plan.Sources{Divider: &sets.Divider{Ledger: c.ledger,
		Members: c.members, Capacity: c.headroom}, Profiles: c.profiles, GPUs: names}}
	c.effects = &loop.Executor{Plugin: Name, Ledger: c.ledger, Profiles: c.profiles, Members: c.members,
		Capacity: c.headroom, Holds: c.holds, Evictor: c.evictor, Recovery: s.recovery}
	c.loop = c.newLoop(inbox)
	return c
}

func (c *coordinator) newLoop(inbox *waiting.Inbox) *loop.Loop {
	list := waiting.NewList()
	list.Capacity, list.Members, list.Profiles = c.headroom, c.members, c.profiles
	return loop.New(loop.Rooms{Ledger: c.ledger, Effects: c.effects,
		Holds: c.holds, Evictor: c.evictor, Held: c.held, Pace: &c.pace, Backoff: c.settings.backoff,
		Status: c.told.status}, inbox, list,
		&hold.Reservations{Election: c.told.election, Agenda: &c.ledger.Agenda, Status: c.told.status,
			Search: hold.Search{Holders: c.settings.holders, After: c.settings.patience, List: list,
				Holds: c.holds, Turns: starts.NewTurns(c.settings.ttl), Sets: c.planner.Divider}})
}

// told is what is said of gangs, and by whom.
type told struct {
	// status is the controller of PodGroups.
	status *status.Controller
	owners *status.Owners
	// election says whether to tell.
	election informers.Election
	// recorder tells of what pods and PodGroups say wrongly.
	recorder events.EventRecorderLogger
}

// doubt says of an object that has told of another checkpoint what is wrong with it, if anything is.
func (t *told) doubt(old, obj metav1.Object, about runtime.Object) {
	key := wellknown.LastCheckpointKey
	if old.GetAnnotations()[key] == obj.GetAnnotations()[key] || !t.election.Leads() {
		return
	}
	if wrong := work.Doubtful(obj, time.Now()); wrong != nil {
		t.recorder.Eventf(about, nil, v1.EventTypeWarning, "CheckpointIgnored", "Reading", "%s: %s", wrong.Error(),
			wrong.Effect)
	}
}

// foreign records once about a pod that it is in a group of another scheduler, and so in none here.
func (t *told) foreign(ctx context.Context, recorder events.EventRecorderLogger, pod *v1.Pod) {
	f, says := read.ForeignOf(pod)
	if !says || pod.Spec.SchedulingGroup != nil || !t.status.Pods.IsNews(pod, "ForeignGroup", f.String()) {
		return
	}
	recorder.WithLogger(klog.FromContext(ctx)).Eventf(pod, nil, v1.EventTypeWarning, "ForeignGroup", "Scheduling", "%s", f)
}
