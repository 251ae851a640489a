package coscheduling

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/waitlist"
)

// Gangs of two members of 4 GPUs each, on a node with 8 that has just come free.
func TestCapacityThatComesFreeEndsOneBackoff(t *testing.T) {
	t.Parallel()
	const initial = time.Second
	now := time.Now()
	for name, test := range map[string]struct {
		// gangs are those that wait, by name, the more important the later.
		gangs map[string]waitlist.Backoff
		// taken is what the node has in use still.
		taken string
		want  []string
	}{
		"the first that pauses is tried": {
			gangs: map[string]waitlist.Backoff{"a": {Until: now.Add(time.Minute)}, "b": {Until: now.Add(time.Minute)}}, want: []string{"b"}},
		"one that does not pause is tried anyway": {
			gangs: map[string]waitlist.Backoff{"a": {Until: now.Add(time.Minute)}, "b": {}}, want: []string{"a", "b"}},
		"one that has just been tried where it should have fitted pauses on": {
			gangs: map[string]waitlist.Backoff{"a": {}, "b": {Since: now.Add(-initial / 2), Until: now.Add(time.Minute), Misjudged: true}}, want: []string{"a"}},
		"one that should have fitted is tried after the shortest pause": {
			gangs: map[string]waitlist.Backoff{"b": {Since: now.Add(-initial), Until: now.Add(time.Minute), Misjudged: true}}, want: []string{"b"}},
		"none is tried if there is too little room": {
			gangs: map[string]waitlist.Backoff{"a": {Until: now.Add(time.Minute)}, "b": {Until: now.Add(time.Minute)}}, taken: "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCoordinator(settings{backoff: gang.Backoff{Initial: initial}}, cache.NewStore(cache.MetaNamespaceKeyFunc))
			list, queue := c.loop.list, c.loop.queue
			c.headroom.SetNode(gpuNode("n", "8").Obj())
			c.headroom.SetPod(gpuPod("used", "n", "8"), gang.ID{})
			member := gpuPod("member", "", "4")
			for name, p := range test.gangs {
				g := &waitlist.Gang{Waiting: gang.Waiting{ID: gang.ID{Name: name}, Key: gang.Key{Priority: int32(name[0])}, Need: gang.Minimum{Total: 2},
					Classes: []gang.WaitingClass{{Count: 2}}, RetryAt: p.Until}, Backoff: p, Shapes: []capacity.Need{{Shape: c.headroom.Acquire(member), Count: 2}}}
				list.Index(g)
				queue.Wait(g.ID, g.Key, g.RetryAt, now)
			}
			c.headroom.Refresh()
			c.headroom.DropPod("used")
			if test.taken != "" {
				c.headroom.SetPod(gpuPod("rest", "n", test.taken), gang.ID{})
			}
			gained, _ := c.headroom.Refresh()
			for id := range list.ByID {
				queue.Retry(id, now)
			}

			if g := list.EndBackoff(gained, initial, now); g != nil {
				queue.Wait(g.ID, g.Key, now, now)
			}
			var tried []string
			for id, ok, _ := queue.Next(now); ok; id, ok, _ = queue.Next(now) {
				tried = append([]string{id.Name}, tried...)
			}
			if diff := cmp.Diff(test.want, tried); diff != "" {
				t.Errorf("tried (-want +got):\n%s", diff)
			}
		})
	}
}
