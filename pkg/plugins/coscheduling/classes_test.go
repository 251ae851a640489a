package coscheduling

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/sla"
	"berth.dev/berth/pkg/wellknown"
)

func TestMembersHaveTheClassesOfTheirGang(t *testing.T) {
	t.Parallel()
	classes := sla.NewOrder([]sla.Class{{Name: "interactive", Deadline: time.Minute},
		{Name: "batch", Deadline: 4 * time.Hour}},
		&sla.Ageing{PerHour: 1, UpTo: 100})
	p := queueOf(classes)
	id, ledger := gang.ID{Namespace: "ns", Name: "g"}, p.shared.ledger
	ledger.Define(id, gang.Object, gang.Spec{Minimum: gang.Minimum{Total: 2}, Created: noon, UID: "g"}, noon)
	var members []*framework.QueuedPodInfo
	for i, class := range []string{"interactive", "batch"} {
		e := waitingPod(t, fmt.Sprintf("member-%d", i), 10, time.Hour, class)
		pod := e.GetPod()
		pod.Labels["scheduling.x-k8s.io/pod-group"] = "g"
		m := read.Member(pod, read.Membership{ID: id}, nil, true)
		m.Precedence = p.shared.settings.classes.precedence(pod, nil)
		ledger.Observe(id, m, noon)
		members = append(members, e)
	}
	ledger.Agenda.Invite(id, noon)
	if ok, why := ledger.Cycles.Admit("member-0"); !ok {
		t.Fatalf("the leader is held: %s", why)
	}
	// Due with the class of the least urgent member, counted from the creation of the group.
	want := gang.Key{Precedence: gang.Precedence{Ages: true, Wait: 94 * time.Hour}, Priority: 10, Time: noon, Tie: "g"}
	if diff := cmp.Diff(want, p.key(members[0])); diff != "" {
		t.Errorf("key of the leader (-want +got):\n%s", diff)
	}
	members[0].GetPod().Labels[wellknown.SLAClassKey] = "batch"
	if diff := cmp.Diff(want, p.key(members[0])); diff != "" {
		t.Errorf("the key changed while the leader is queued (-want +got):\n%s", diff)
	}
}

func TestAPodThatNamesItsClassWronglyWaitsUntilItIsPutRight(t *testing.T) {
	t.Parallel()
	p := queueOf(sla.NewOrder([]sla.Class{{Name: "batch", Deadline: time.Hour}}, nil))
	bad := waitingPod(t, "bad", 0, 0, "gold").GetPod()
	good := waitingPod(t, "bad", 0, 0, "batch").GetPod()
	const want = `pod label berth.dev/sla-class: "gold" is not one of the classes open to pods of PriorityClass "": "batch"`
	if got := p.shared.settings.classes.misstated(bad); got == nil || got.Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
	events, err := p.EventsToRegister(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hint := events[1].QueueingHintFn
	for _, tc := range []struct {
		name        string
		before, now *v1.Pod
		want        fwk.QueueingHint
	}{
		{"put right", bad, good, fwk.Queue}, {"still wrong", bad, bad, fwk.QueueSkip},
		{"right all along", good, good, fwk.QueueSkip},
	} {
		if got, err := hint(klog.Background(), bad, tc.before, tc.now); got != tc.want || err != nil {
			t.Errorf("%s: hint %v, %v; want %v", tc.name, got, err, tc.want)
		}
	}
}
