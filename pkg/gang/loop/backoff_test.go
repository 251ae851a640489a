package loop

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/hold"
	"berth.dev/berth/pkg/gang/waiting"
	"berth.dev/berth/pkg/process"
)

const gpu = v1.ResourceName("nvidia.com/gpu")

func gpuPod(name, node, gpus string) *v1.Pod {
	return st.MakePod().Name(name).UID(name).Node(node).Req(map[v1.ResourceName]string{gpu: gpus}).Obj()
}

// loopOverAFullNode knows the node n, whose 8 GPUs the pod "used" has.
func loopOverAFullNode(backoff gang.Backoff) *Loop {
	list := waiting.NewList()
	free := capacity.New(&process.Profiles{})
	list.Capacity, list.Profiles = free, &process.Profiles{}
	free.Feed.SetNode(st.MakeNode().Name("n").Capacity(map[v1.ResourceName]string{gpu: "8", v1.ResourceCPU: "16",
		v1.ResourcePods: "110"}).Obj())
	free.Feed.SetPod(gpuPod("used", "n", "8"), gang.ID{})
	return New(Rooms{Holds: &hold.Holds{}, Backoff: backoff}, nil, list, nil)
}

func TestRoomThatCameDuringAnAttemptIsNotMisjudged(t *testing.T) {
	t.Parallel()
	l := loopOverAFullNode(gang.Backoff{})
	g := &waiting.Gang{Waiting: gang.Waiting{ID: gang.ID{Name: "g"}, Need: gang.Minimum{Total: 2},
		Classes: []gang.WaitingClass{{Count: 2}}},
		Shapes: []capacity.Need{{Shape: l.List.Capacity.Acquire(gpuPod("member", "", "4")), Count: 2}}}
	g.Roomy = l.roomy(g)
	l.List.Capacity.Feed.DropPod("used")
	if l.misjudged(g) {
		t.Error("a gang that was tried while its node was full is taken for one that fitted")
	}
	if g.Roomy = l.roomy(g); !l.misjudged(g) {
		t.Error("a gang that fitted before its attempt and after it is not taken for misjudged")
	}
}

// Gangs of two members of 4 GPUs each, on a node with 8 that has just come free.
func TestCapacityThatComesFreeEndsOneBackoff(t *testing.T) {
	t.Parallel()
	const initial = time.Second
	now := time.Now()
	pauses := waiting.Backoff{Until: now.Add(time.Minute)}
	for name, test := range map[string]struct {
		// gangs are those that wait, by name, the more important the later.
		gangs map[string]waiting.Backoff
		// taken is what the node has in use still; told is the gang alone that a happening concerns, and volumes is set if
		// one concerns gangs that need volumes.
		taken, told string
		volumes     bool
		// nodes is how many nodes with 8 GPUs come besides.
		nodes int
		// after is how much later it is asked who is tried.
		after time.Duration
		want  []string
	}{
		"the first that pauses is tried": {gangs: map[string]waiting.Backoff{"a": pauses, "b": pauses}, want: []string{"b"}},
		"as many are tried as fit beside each other": {nodes: 1, want: []string{"b", "c"},
			gangs: map[string]waiting.Backoff{"a": pauses, "b": pauses, "c": pauses}},
		"one that does not pause is tried anyway": {gangs: map[string]waiting.Backoff{"a": pauses, "b": {}},
			want: []string{"a", "b"}},
		"one that has just been tried where it should have fitted pauses on": {
			gangs: map[string]waiting.Backoff{"a": {}, "b": {Since: now.Add(-initial / 2), Until: now.Add(time.Minute),
				Misjudged: true}}, want: []string{"a"}},
		"one that should have fitted does not pause for longer than the shortest time": {
			gangs: map[string]waiting.Backoff{"b": {Since: now.Add(-initial / 2), Until: now.Add(time.Minute), Misjudged: true}},
			after: initial / 2, want: []string{"b"}},
		"the first that needs volumes is tried when a volume comes": {
			gangs: map[string]waiting.Backoff{"a": pauses, "b": pauses}, volumes: true, want: []string{"b"}},
		"one that should have fitted is tried after the shortest pause": {
			gangs: map[string]waiting.Backoff{"b": {Since: now.Add(-initial), Until: now.Add(time.Minute), Misjudged: true}},
			want:  []string{"b"}},
		"one that a happening concerns is tried": {gangs: map[string]waiting.Backoff{"a": pauses, "b": pauses},
			told: "a", want: []string{"a"}},
		"none is tried if there is too little room": {taken: "2",
			gangs: map[string]waiting.Backoff{"a": pauses, "b": pauses}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := loopOverAFullNode(gang.Backoff{Initial: initial})
			list, free := l.List, l.List.Capacity
			member := gpuPod("member", "", "4")
			for name, p := range test.gangs {
				g := &waiting.Gang{Waiting: gang.Waiting{ID: gang.ID{Name: name}, Key: gang.Key{Priority: int32(name[0])},
					Need:    gang.Minimum{Total: 2},
					Classes: []gang.WaitingClass{{Count: 2}}, RetryAt: p.Until}, Backoff: p, Needs: waiting.NeedsVolumes,
					Shapes: []capacity.Need{{Shape: free.Acquire(member), Count: 2}}}
				list.Index(g)
				l.queue.Wait(g.ID, g.Key, g.RetryAt, now)
			}
			free.Looks.Refresh()
			free.Feed.DropPod("used")
			if test.taken != "" {
				free.Feed.SetPod(gpuPod("rest", "n", test.taken), gang.ID{})
			}
			for i := range test.nodes {
				free.Feed.SetNode(st.MakeNode().Name(fmt.Sprint("more-", i)).Capacity(map[v1.ResourceName]string{gpu: "8",
					v1.ResourceCPU: "16", v1.ResourcePods: "110"}).Obj())
			}
			gained, _ := free.Looks.Refresh()
			for id := range list.ByID {
				l.queue.Retry(id, now)
			}

			happenings := map[waiting.Happening]bool{}
			if test.told != "" {
				gained, happenings = nil, map[waiting.Happening]bool{{Only: gang.ID{Name: test.told}}: true}
			}
			if test.volumes {
				gained, happenings = nil, map[waiting.Happening]bool{{Kind: waiting.NeedsVolumes}: true}
			}
			l.endBackoff(gained, happenings, now)
			var tried []string
			then := now.Add(test.after)
			for id, ok, _ := l.queue.Next(then); ok; id, ok, _ = l.queue.Next(then) {
				tried = append([]string{id.Name}, tried...)
			}
			if diff := cmp.Diff(test.want, tried); diff != "" {
				t.Errorf("tried (-want +got):\n%s", diff)
			}
		})
	}
}
