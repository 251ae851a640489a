package replay

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/trace"
)

func TestStaysAreFromThePodsNodeToItsEnd(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	s := stays{start: start}
	gang := &jobState{Job: trace.Job{Name: "train", Gang: true}, arrived: at(10)}
	member := &podState{key: types.NamespacedName{Namespace: "replay", Name: "train-0"}, job: gang, node: "n1"}
	there := &podState{key: types.NamespacedName{Namespace: "team", Name: "p"}, node: "n2"}
	s.begin(there, start)
	s.begin(member, at(30))
	s.end(member, at(50))
	member.node = "n2"
	s.begin(member, at(60))
	s.end(&podState{}, at(70))
	want := []replayed.Stay{{Job: "team/p", Node: "n2", To: 90}, {Job: "train", Node: "n1", Gang: true, Arrived: 10,
		From: 30, To: 50},
		{Job: "train", Node: "n2", Gang: true, Arrived: 10, From: 60, To: 90}}
	if diff := cmp.Diff(want, s.result(at(90))); diff != "" {
		t.Errorf("stays (-want +got):\n%s", diff)
	}
}

func TestNoMoreStaysAreKeptThanTheFirst(t *testing.T) {
	t.Parallel()
	s := stays{list: make([]*replayed.Stay, mostStays)}
	pod := &podState{}
	s.begin(pod, time.Time{})
	if s.end(pod, time.Time{}); len(s.list) != mostStays || pod.stay != nil {
		t.Errorf("%d stays are kept", len(s.list))
	}
}
