package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/plan/account"
	"berth.dev/berth/pkg/podview"
)

// Run places a gang on a copy of the cluster within one scheduling cycle, with the profile's own filters, scores and
// reservations. Nodes are copied only when a member is placed on them.
//
// What a member takes must count for its siblings. Most plugins see it in the NodeInfo or through AddPod; those that
// keep it elsewhere (devices of claims, volumes, a plugin's own state) through Reserve. So a member that a plugin's
// Reserve records is reserved until the dry run ends, and filtered with a state of its own.
type Run struct {
	ctx  context.Context
	work *Work
	nodeCopies
	membership
	placements
	of        gang.ID
	directory *members.Directory
	// gone are pods that are taken to be gone.
	gone []PlacedPod
	// group marks the states of the dry run as a simulation of a group, in which plugins let members share what is being
	// allocated.
	group    fwk.PodGroupCycleState
	refusals refusals
	storage  *account.Storage
}

// membership is the members that are to be placed.
type membership struct {
	Pods    map[gang.UID]*v1.Pod
	Classes map[string]*Class
	claims  account.SharedClaims
}

// placements is what was placed so far.
type placements struct {
	// open holds the classes whose members are being placed: they have to know where others are placed.
	open []*Class
	// placed lists the placed pods, for classes that are opened later.
	placed   []PlacedPod
	reserved []reservedPod
	// start is the node on which the last member was placed.
	start int
}

// refusals are the nodes that have refused members of a class, and the last message of a plugin that has turned a
// member away.
type refusals struct {
	nodes map[gang.Refusal]bool
	said  string
}

// has reports whether the node is refused to the class, or to all.
func (r *refusals) has(class, node string) bool {
	return len(r.nodes) > 0 && (r.nodes[gang.Refusal{Class: class, Node: node}] || r.nodes[gang.Refusal{Node: node}])
}

// PlacedPod is a pod on a node.
type PlacedPod struct {
	Info fwk.PodInfo
	Node string
}

// reservedPod is a member that the plugins hold reserved until the dry run ends.
type reservedPod struct {
	profile framework.Framework
	state   fwk.CycleState
	pod     *v1.Pod
	node    string
}

// newRun prepares a dry run of members on some nodes. It has to be closed.
func (p *Planner) newRun(w *Work, id gang.ID, members []gang.Member, on Part) (*Run, error) {
	d := &Run{
		ctx:        w.Ctx,
		work:       w,
		nodeCopies: nodeCopies{Part: on, copies: map[string]fwk.NodeInfo{}},
		membership: membership{Pods: make(map[gang.UID]*v1.Pod, len(members)), Classes: map[string]*Class{},
			claims: account.SharedClaims{}},
		of:        id,
		directory: p.Members,
		group:     framework.NewCycleState(),
		refusals:  refusals{nodes: map[gang.Refusal]bool{}, said: p.Ledger.LastRejection(id)},
		storage:   account.NewStorage(p.Storage),
	}
	maps.Copy(d.refusals.nodes, p.Ledger.Refused(id))
	for i := range members {
		m := &members[i]
		pod := p.Members.Pod(m.Ref)
		if pod == nil {
			return nil, fmt.Errorf("member %s/%s has just gone", m.Namespace, m.Name)
		}
		d.Pods[m.UID] = pod
		r := d.Classes[m.Class]
		if r == nil {
			info, err := framework.NewPodInfo(pod)
			if err != nil {
				return nil, fmt.Errorf("reading pod %s/%s: %w", m.Namespace, m.Name, err)
			}
			info.CalculateResource()
			profile := p.Profiles.Of(pod)
			filters := p.Profiles.Traits(pod)
			r = &Class{run: d, Pod: pod, turnedAway: map[string]*fwk.Status{}, traits: traits{class: m.Class, info: info,
				Profile: profile, filters: filters, reserves: filters.Reserves(pod)}}
			d.Classes[m.Class], d.lister = r, profile.SnapshotSharedLister().NodeInfos()
		}
		r.members++
		r.left++
		d.claims.Count(pod)
	}
	w.many = len(d.Classes) > manyClasses
	return d, nil
}

// close gives back what was reserved for the length of the dry run.
func (d *Run) close() {
	for _, r := range slices.Backward(d.reserved) {
		r.profile.RunReservePluginsUnreserve(d.ctx, r.state, r.pod, r.node)
	}
	d.reserved = nil
}

// Place places the member on the node that is best for it now, for the rest of the dry run.
func (d *Run) Place(m gang.Member) (gang.Assignment, bool, error) {
	r, pod := d.Classes[m.Class], d.Pods[m.UID]
	defer r.tried()
	r.enter(d.homes.of[m.UID])
	if r.full {
		return gang.Assignment{}, false, nil
	}
	if err := r.begin(pod); err != nil {
		return gang.Assignment{}, false, err
	}
	for {
		i, ok, err := r.best()
		if err != nil || !ok {
			return gang.Assignment{}, false, err
		}
		if taken, err := r.reserve(pod, i); err != nil {
			return gang.Assignment{}, false, err
		} else if taken {
			d.start = i
			a := gang.Assignment{UID: m.UID, Node: d.Nodes[i].Node().Name,
				First: d.claims.First(r.Profile.SharedDRAManager(), d.storage, pod)}
			return a, true, d.place(r, pod, i)
		}
	}
}

// place puts the pod on the node and tells every class of it.
func (d *Run) place(of *Class, pod *v1.Pod, i int) error {
	// All members of a class ask for the same, which is computed once.
	info := *of.info
	info.Pod = pod
	n := d.edit(d.Nodes[i])
	n.AddPodInfo(&info)
	d.storage.Take(of.volumes, n.Node())
	d.placed = append(d.placed, PlacedPod{Info: &info, Node: n.Node().Name})
	last := of.left == 1
	for _, r := range d.open {
		if last && r == of {
			continue
		}
		d.work.spend(1)
		r.changes, r.full = r.changes+1, false
		for _, s := range r.spreads {
			s.Add(pod, n.Node())
		}
		if !r.readsOthers {
			continue
		}
		if status := r.Profile.RunPreFilterExtensionAddPod(d.ctx, r.State, r.Pod, &info, n); !status.IsSuccess() {
			return fmt.Errorf("counting pod %s on node %s: %w", klog.KObj(pod), n.Node().Name, status.AsError())
		}
	}
	if last {
		return nil
	}
	return of.reconsider(i)
}

// remove takes pods off their nodes for the rest of the dry run, before the first member is placed.
func (d *Run) remove(pods []*v1.Pod) error {
	for _, pod := range pods {
		node, err := d.lister.Get(pod.Spec.NodeName)
		if err != nil {
			continue // it is gone, and the pod with it
		}
		at := slices.IndexFunc(node.GetPods(), func(info fwk.PodInfo) bool { return info.GetPod().UID == pod.UID })
		if at < 0 {
			continue
		}
		info := node.GetPods()[at]
		if err := d.edit(node).RemovePod(klog.FromContext(d.ctx), info.GetPod()); err != nil {
			return fmt.Errorf("removing pod %s: %w", klog.KObj(pod), err)
		}
		d.gone = append(d.gone, PlacedPod{Info: info, Node: pod.Spec.NodeName})
	}
	return nil
}

// Spent reports whether the plan has to come to an end.
func (d *Run) Spent() bool { return d.work.spent() }

// Describe says what the members of a class ask for.
func (d *Run) Describe(class string) string { return podview.DescribeRequest(d.Classes[class].Pod) }

// sibling reports whether a pod is of the same gang.
func (d *Run) sibling(pod *v1.Pod) bool { return d.of != gang.ID{} && d.directory.ID(pod) == d.of }

// nominated returns the pods that are nominated to the node and that come before the class, without siblings: these
// were nominated by an earlier plan.
func (d *Run) nominated(r *Class, node string) []fwk.PodInfo {
	var out []fwk.PodInfo
	for _, info := range r.Profile.NominatedPodsForNode(node) {
		pod := info.GetPod()
		if !d.sibling(pod) && corev1helpers.PodPriority(pod) >= corev1helpers.PodPriority(r.Pod) {
			out = append(out, info)
		}
	}
	return out
}
