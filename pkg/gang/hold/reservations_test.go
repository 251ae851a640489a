package hold

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/starts"
	"berth.dev/berth/pkg/gang/waiting"
)

// reserving keeps what gangs may keep of the index.
func reserving(x *capacity.Index) *Reservations {
	list := waiting.NewList()
	list.Capacity, list.Members = x, testMembers()
	return &Reservations{Search: Search{Holders: Holders{inTurn: 100, byTime: 100}, List: list, Turns: starts.NewTurns(0),
		Holds: &Holds{Gate: Gate{Members: testMembers()}}}}
}

// gangOfClasses waits with one member of each class, and as many shapes.
func gangOfClasses(h *capacity.Index, classes, shapes int) *waiting.Gang {
	g := &waiting.Gang{Waiting: gang.Waiting{ID: gang.ID{Namespace: "ns", Name: "g"}, Need: gang.Minimum{Total: classes}}}
	for i := range classes {
		pod := st.MakePod().Namespace("ns").Name(fmt.Sprintf("m-%d", i)).
			Req(map[v1.ResourceName]string{v1.ResourceCPU: fmt.Sprintf("%dm", 1000+i%shapes)}).Obj()
		g.Pods = append(g.Pods, pod)
		g.Classes = append(g.Classes, gang.WaitingClass{Class: fmt.Sprint(i), Count: 1})
		g.Shapes = append(g.Shapes, capacity.Need{Shape: h.Acquire(pod), Count: 1})
	}
	return g
}

func TestReservationOfManyClasses(t *testing.T) {
	t.Parallel()
	const nodes = 1000
	h := testIndex()
	for i := range nodes {
		h.Feed.SetNode(st.MakeNode().Name(fmt.Sprintf("n%04d", i)).Capacity(map[v1.ResourceName]string{v1.ResourceCPU: "2",
			v1.ResourcePods: "110"}).Obj())
	}
	r := reserving(h)
	for _, tc := range []struct {
		name            string
		classes, shapes int
		want            int
	}{
		{"members that ask for the same share the room of a node", 6, 1, 3},
		{"as many shapes as a look can compare", reserveRooms / nodes, reserveRooms / nodes, reserveRooms / nodes},
		{"more shapes than a look can compare", reserveRooms/nodes + 1, reserveRooms/nodes + 1, 0},
		{"more classes of few shapes", 2 * reserveRooms / nodes, 1, reserveRooms / nodes},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			kept, ok := r.Search.choose(gangOfClasses(h, tc.classes, tc.shapes), nil, true, time.Now())
			on := map[string]bool{}
			for _, place := range kept.Places {
				on[place.Node] = true
			}
			if diff := cmp.Diff([2]any{tc.want > 0, tc.want}, [2]any{ok, len(on)}); diff != "" {
				t.Errorf("whether and on how many nodes something is kept (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsSaidOfWhatIsKept(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return now.Add(time.Duration(minutes) * time.Minute) }
	pod := st.MakePod().Namespace("ns").Name("job").Node("x").Obj()
	places := []starts.Place{{Node: "x", Count: 1}, {Node: "y", Count: 2}}
	for name, test := range map[string]struct {
		kept           starts.Choice
		last, outlived *v1.Pod
		want           string
		start          bool
	}{
		"what fits": {kept: starts.Choice{Ready: true, Start: now}, want: "2 nodes reserved, on which the gang fits"},
		"what has no start": {kept: starts.Choice{Pods: 2},
			want: "2 nodes reserved, on which at least 2 pods have to end first"},
		"a start": {kept: starts.Choice{Pods: 1, Start: at(5).Add(time.Millisecond)}, last: pod, start: true,
			want: "2 nodes reserved; starts at 12:05:01 UTC; waits for job on x, which ends at 12:05:01 UTC"},
		"a start that has come": {kept: starts.Choice{Pods: 1, Start: now}, last: pod,
			want: "2 nodes reserved, on which pods are about to end"},
		"a pod that outlives its word": {kept: starts.Choice{Pods: 1}, outlived: pod,
			want: "2 nodes reserved, on which at least 1 pod has to end first; " +
				"job on x was to end at 11:58:00 UTC and still runs"},
	} {
		test.kept.Places = places
		got := word(&test.kept, test.last, test.outlived, at(-2), now)
		if got.Message != test.want || (got.Start != nil) != test.start {
			t.Errorf("%s: %q, start %v", name, got.Message, got.Start)
		}
	}
}
