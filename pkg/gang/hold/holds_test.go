package hold

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
)

// nodesNamed is the nodes of a cycle, by name.
type nodesNamed struct {
	fwk.NodeInfoLister
	nodes map[string]fwk.NodeInfo
}

func (n nodesNamed) Get(name string) (fwk.NodeInfo, error) {
	if node := n.nodes[name]; node != nil {
		return node, nil
	}
	return nil, fmt.Errorf("there is no node %s", name)
}

func TestWhatIsKept(t *testing.T) {
	t.Parallel()
	pod := func(name, cpu string, priority int32) *v1.Pod {
		p := cpuPod(name, cpu)
		p.Spec.Priority = &priority
		return p
	}
	backfill := func(p *v1.Pod) *v1.Pod {
		p.Annotations = map[string]string{wellknown.BackfillKey: "allow"}
		return p
	}
	held := []*v1.Pod{pod("held", "1", 0)}
	held[0].Spec.NodeName = "other"
	for name, test := range map[string]struct {
		// there are pods on the node, which has 8 CPUs; 4 of them are kept for a gang of priority 10.
		there []*v1.Pod
		hold  Hold
		pod   *v1.Pod
		// gone is set if the pod that something holds on the other node has gone.
		gone    bool
		refused bool
	}{
		"a pod that fits besides":                          {pod: pod("p", "4", 0)},
		"a pod that does not fit besides":                  {pod: pod("p", "5", 10), refused: true},
		"a more important pod":                             {pod: pod("p", "5", 11)},
		"a pod that may backfill a reservation":            {hold: Hold{Kind: forTurn}, pod: backfill(pod("p", "5", 0))},
		"a pod that may backfill what others made way for": {pod: backfill(pod("p", "5", 0)), refused: true},
		"a pod beside one that backfills a reservation": {hold: Hold{Kind: forTurn},
			there: []*v1.Pod{backfill(pod("b", "2", 10))}, pod: pod("p", "4", 0)},
		"too large a pod beside one that does": {hold: Hold{Kind: forTurn},
			there: []*v1.Pod{backfill(pod("b", "2", 10))}, pod: pod("p", "5", 0), refused: true},
		"a pod beside one that does and will not make way": {hold: Hold{Kind: forTurn},
			there: []*v1.Pod{backfill(pod("b", "2", 11))}, pod: pod("p", "4", 0), refused: true},
		"a pod beside one that uses what others made way for": {there: []*v1.Pod{backfill(pod("b", "2", 10))},
			pod: pod("p", "4", 0), refused: true},
		"room that is no use before a pod that is held ends": {hold: Hold{after: held}, pod: pod("p", "5", 0)},
		"room that is of use, as the pod that was held is gone": {hold: Hold{after: held}, pod: pod("p", "5", 0), gone: true,
			refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := cpuNode("node", "8", test.there...)
			other := framework.NewNodeInfo()
			if !test.gone {
				other = framework.NewNodeInfo(pod("held", "1", 0))
			}
			nodes := nodesNamed{nodes: map[string]fwk.NodeInfo{"node": node, "other": other}}
			p, kept := testHolds(nil), test.hold
			kept.To, kept.Priority, kept.Node = gang.ID{Namespace: "ns", Name: "g"}, 10, "node"
			kept.Info = infoOf(t, pod("m", "4", 10))
			p.Add(kept)
			to, refused := p.Gate.Refuse(test.pod, node, nodes)
			if refused != test.refused || refused && to != kept.To {
				t.Errorf("refused %t for %v, want %t", refused, to, test.refused)
			}
			if len(node.GetPods()) != len(test.there) {
				t.Errorf("the node has %d pods now, want %d", len(node.GetPods()), len(test.there))
			}
		})
	}
}

func TestWhatIsPostponedIsNotKeptFromOthersYet(t *testing.T) {
	t.Parallel()
	p, member := testHolds(nil), infoOf(t, cpuPod("m", "1"))
	id, rival := gang.ID{Namespace: "ns", Name: "g"}, gang.ID{Namespace: "ns", Name: "rival"}
	p.Add(Hold{To: id, Kind: AfterEviction, Node: "n", Info: member})
	p.Add(Hold{To: id, Kind: ForReturn, Node: "n", Info: member})
	p.Postpone(id, []*v1.Pod{st.MakePod().Node("n").Obj()})
	left := p.ToOthers(rival, 0)
	if len(left) != 1 || left[0].Kind != ForReturn {
		t.Errorf("kept from others: %+v, want what a lost member held", left)
	}
}

// comparesNothing is a profile without filters.
type comparesNothing struct{ framework.Framework }

func (comparesNothing) ProfileName() string { return "" }

func (comparesNothing) ListPlugins() *config.Plugins { return &config.Plugins{} }

func (comparesNothing) EnqueueExtensions() []fwk.EnqueueExtensions { return nil }

func (comparesNothing) SharedDRAManager() fwk.SharedDRAManager { return nil }

func TestHoldsAreComparedAsTheProfileCompares(t *testing.T) {
	t.Parallel()
	const rdma = "example.com/rdma"
	pod := st.MakePod().Name("p").UID("p").Req(map[v1.ResourceName]string{v1.ResourceCPU: "1", rdma: "1"}).Obj()
	node, p := cpuNode("n", "16"), testHolds(nil)
	p.Add(Hold{To: gang.ID{Name: "g"}, Kind: forTurn, Node: "n", Info: infoOf(t, cpuPod("m", "1"))})
	for _, ignored := range []bool{false, true} {
		p.Gate.Profiles = &process.Profiles{}
		if ignored {
			p.Gate.Profiles.Add(comparesNothing{})
		}
		if _, refused := p.Gate.Refuse(pod, node, nodesNamed{}); refused == ignored {
			t.Errorf("refused: %v where the resource is ignored: %v", refused, ignored)
		}
	}
}

// A gang of four CPUs is to start in an hour on a node of four.
func TestWhoMayUseWhatIsKeptByTime(t *testing.T) {
	t.Parallel()
	now := time.Now()
	pod := func(name, runs, cpu string) *v1.Pod {
		p := cpuPod(name, cpu)
		if runs != "" {
			p.Annotations = map[string]string{wellknown.RunTimeKey: runs}
		}
		return p
	}
	limited := pod("limited", "", "4")
	limited.Spec.ActiveDeadlineSeconds = ptr.To[int64](1800)
	runs := func(p *v1.Pod, minutes int) *v1.Pod {
		p.Spec.NodeName, p.Status.StartTime = "n", ptr.To(metav1.NewTime(now.Add(-time.Duration(minutes)*time.Minute)))
		return p
	}
	member := func(group string) *v1.Pod {
		p := pod("m-"+group, "", "4")
		p.Labels = map[string]string{schedulingv1alpha1.PodGroupLabel: group}
		return p
	}
	directory := testMembers()
	for group, declares := range map[string]string{"short": "30m", "silent": ""} {
		pg := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: group}}
		if declares != "" {
			pg.Annotations = map[string]string{wellknown.RunTimeKey: declares}
		}
		require.NoError(t, directory.Groups.Add(pg))
	}
	for name, test := range map[string]struct {
		pod   *v1.Pod
		there []*v1.Pod
		// wide is set if the node has eight CPUs.
		wide    bool
		refused bool
	}{
		"a pod that is gone by then":              {pod: pod("short", "30m", "4")},
		"a pod that is not":                       {pod: pod("long", "3h", "4"), refused: true},
		"a pod that is gone at that very moment":  {pod: pod("hour", "1h", "4"), refused: true},
		"a pod that says nothing":                 {pod: pod("silent", "", "4"), refused: true},
		"a pod that is ended by then":             {pod: limited},
		"a member of a gang that is gone by then": {pod: member("short")},
		"a member of a gang that says nothing":    {pod: member("silent"), refused: true},
		"a pod for which the rest suffices":       {pod: pod("long", "3h", "4"), wide: true},
		"a pod for which it does not":             {pod: pod("long", "3h", "5"), wide: true, refused: true},
		"a pod beside one that is gone by then": {wide: true, pod: pod("long", "3h", "4"),
			there: []*v1.Pod{runs(pod("r", "1h", "4"), 30)}},
		"a pod beside one that stays": {wide: true, pod: pod("long", "3h", "4"),
			there: []*v1.Pod{runs(pod("r", "3h", "4"), 30)}, refused: true},
		"a pod beside one that has outlived its word": {wide: true, pod: pod("long", "3h", "4"),
			there: []*v1.Pod{runs(pod("r", "20m", "4"), 30)}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testHolds(nil)
			p.Gate.Members = directory
			p.Add(Hold{To: gang.ID{Namespace: "ns", Name: "g"}, Kind: forTurn, Node: "n",
				Info: infoOf(t, pod("m", "", "4")), start: now.Add(time.Hour)})
			cpu := "4"
			if test.wide {
				cpu = "8"
			}
			node := cpuNode("n", cpu, test.there...)
			if _, refused := p.Gate.Refuse(test.pod, node,
				nodesNamed{nodes: map[string]fwk.NodeInfo{"n": node}}); refused != test.refused {
				t.Errorf("refused: %v, want %v", refused, test.refused)
			}
			// The account of free capacity and the filter agree, where the rest does not decide.
			kept := p.Gate.Against(directory.ID(test.pod), []*v1.Pod{test.pod})
			if !test.wide && (len(kept) > 0) != test.refused {
				t.Errorf("kept from the gang: %v, want %v", len(kept) > 0, test.refused)
			}
		})
	}
}

// What pods were evicted for does not count while the member has a node for whom it is kept, and counts again when the
// member gives that back before its gang has started.
func TestWhatIsKeptForAMemberWithANode(t *testing.T) {
	t.Parallel()
	id, now := gang.ID{Namespace: "ns", Name: "g"}, time.Now()
	member, node := cpuPod("m", "4"), cpuNode("n", "4")
	ledger := gang.NewLedger(time.Minute, nil)
	ledger.Define(id, gang.Object, gang.Spec{Minimum: gang.Minimum{Total: 2}}, now)
	for _, uid := range []gang.UID{"m", "other"} {
		ledger.Observe(id, gang.Member{Ref: gang.Ref{UID: uid}, State: gang.Pending, Ours: true}, now)
	}
	p := testHolds(&ledger.Cycles)
	p.Add(Hold{To: id, Kind: AfterEviction, Node: "n", Member: "m", Info: infoOf(t, member)})
	check := func(when string, counts bool) {
		if _, refused := p.Gate.Refuse(cpuPod("another", "4"), node, nodesNamed{}); refused != counts {
			t.Errorf("%s, another pod is refused: %t, want %t", when, refused, counts)
		}
		if got := len(p.ToOthers(gang.ID{}, 0)); (got > 0) != counts {
			t.Errorf("%s, %d things are kept", when, got)
		}
	}
	check("while the member waits", true)
	ledger.Agenda.Invite(id, now)
	ledger.Cycles.Of("m")
	ledger.Cycles.Propose("m", gang.Proposal{Assignments: []gang.Assignment{{UID: "m", Node: "n"},
		{UID: "other", Node: "o"}}}, now)
	if !ledger.Cycles.Reserve("m", "n", now) {
		t.Fatal("the member does not get its node")
	}
	p.Take(member, "n")
	check("while the member has its node", false)
	ledger.Cycles.Unreserve("m", gang.Backoff{}, now)
	check("when it has given the node back", true)
}

// What a lost leader held is for the next leader, also within its gang, but for members that are planned together.
func TestWhatIsKeptForARole(t *testing.T) {
	t.Parallel()
	id, now := gang.ID{Namespace: "ns", Name: "g"}, time.Now()
	pod := func(name, role string) *v1.Pod {
		p := cpuPod(name, "4")
		p.Labels = map[string]string{schedulingv1alpha1.PodGroupLabel: "g", wellknown.RoleKey: role}
		return p
	}
	node := cpuNode("n", "4")
	ledger := gang.NewLedger(time.Minute, nil)
	ledger.Define(id, gang.Object, gang.Spec{Minimum: gang.Minimum{Total: 1}}, now)
	ledger.Observe(id, gang.Member{Ref: gang.Ref{UID: "first"}, State: gang.Bound, Node: "m"}, now)
	alone := func(pod *v1.Pod) *v1.Pod {
		ledger.Observe(id, gang.Member{Ref: gang.Ref{UID: gang.UID(pod.UID)}, State: gang.Pending, Ours: true}, now)
		ledger.Cycles.Of(gang.UID(pod.UID))
		return pod
	}
	p := testHolds(&ledger.Cycles)
	p.Add(Hold{To: id, Kind: ForReturn, Node: "n", Role: "leader", Info: infoOf(t, pod("lost", "leader"))})
	for _, tc := range []struct {
		name    string
		pod     *v1.Pod
		refused bool
	}{
		{"the next leader", alone(pod("leader", "leader")), false},
		{"a worker", alone(pod("worker", "worker")), true},
		{"a worker that is planned with others", pod("planned", "worker"), false},
	} {
		if _, refused := p.Gate.Refuse(tc.pod, node, nodesNamed{}); refused != tc.refused {
			t.Errorf("%s is refused: %t, want %t", tc.name, refused, tc.refused)
		}
	}
	p.Take(pod("worker", "worker"), "n")
	if len(p.To(id)) != 1 {
		t.Error("a worker has taken what is kept for a leader")
	}
	p.Take(pod("leader", "leader"), "m")
	if len(p.To(id)) != 0 {
		t.Error("the leader that has gone elsewhere has not taken it")
	}
}
