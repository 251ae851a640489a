package coscheduling

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
