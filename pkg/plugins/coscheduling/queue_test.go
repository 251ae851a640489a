package coscheduling

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/backend/heap"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/sla"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// queueOf returns a plugin that sorts by these classes, nil for none.
func queueOf(order *sla.Order) queue {
	c := &coordinator{ledger: gang.NewLedger(time.Minute, nil), members: &members.Directory{},
		settings: settings{classes: queueClasses{order: order}}}
	return queue{c}
}

// waitingPod is a pod of the queue, created at noon and as much later as given.
func waitingPod(t require.TB, name string, priority int32, after time.Duration,
	class string) *framework.QueuedPodInfo {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: apitypes.UID(name),
		CreationTimestamp: metav1.NewTime(noon.Add(after))},
		Spec: v1.PodSpec{Priority: &priority}}
	if class != "" {
		pod.Labels = map[string]string{wellknown.SLAClassKey: class}
	}
	info, err := framework.NewPodInfo(pod)
	require.NoError(t, err)
	return &framework.QueuedPodInfo{PodInfo: info, QueueingParams: framework.QueueingParams{Timestamp: noon.Add(after)}}
}

func TestQueueOrder(t *testing.T) {
	t.Parallel()
	classes := []sla.Class{
		{Name: "interactive", Deadline: time.Minute},
		{Name: "batch", Deadline: 4 * time.Hour},
	}
	type pod struct {
		name     string
		priority int32
		after    time.Duration
		class    string
	}
	for _, tc := range []struct {
		name  string
		order *sla.Order
		// first to last
		want []pod
	}{
		{"without classes by priority, then by time", nil, []pod{{"c", 5, time.Hour, ""}, {"b", 0, 0, ""},
			{"a", 0, time.Second, ""}}},
		{"with classes by priority first", sla.NewOrder(classes, nil),
			[]pod{{"b", 5, time.Hour, "batch"}, {"a", 0, 0, "interactive"}}},
		{"of one priority, whose deadline comes first", sla.NewOrder(classes, nil),
			[]pod{{"c", 0, time.Hour, "interactive"}, {"b", 0, 0, "batch"}, {"a", 0, 4 * time.Hour, "interactive"}}},
		{"ten hours make up for ten points", sla.NewOrder(nil, &sla.Ageing{PerHour: 1, UpTo: 100}),
			[]pod{{"c", 10, 10*time.Hour - time.Second, ""}, {"b", 0, 0, ""}, {"a", 10, 10*time.Hour + time.Second, ""}}},
		{"an unknown class counts as none", sla.NewOrder(classes, nil),
			[]pod{{"b", 0, 0, "batch"}, {"a", 0, time.Second, "gold"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := queueOf(tc.order)
			var last *framework.QueuedPodInfo
			for _, w := range tc.want {
				next := waitingPod(t, w.name, w.priority, w.after, w.class)
				if last != nil && (!p.Less(last, next) || p.Less(next, last)) {
					t.Errorf("%s does not come before %s", last.GetPod().Name, w.name)
				}
				last = next
			}
		})
	}
}

func TestPodsThatComeAtOnceKeepTheOrderOfTheirCreation(t *testing.T) {
	t.Parallel()
	older, younger := waitingPod(t, "b", 0, 0, ""), waitingPod(t, "a", 0, time.Hour, "")
	older.Timestamp = younger.Timestamp
	if p := queueOf(nil); !p.Less(older, younger) || p.Less(younger, older) {
		t.Error("of two pods that came to the queue at once, the younger one comes first")
	}
}

func TestPodsOfAClassAreDueWhenTheyHaveToStart(t *testing.T) {
	t.Parallel()
	p := queueOf(sla.NewOrder([]sla.Class{{Name: "own", Deadline: time.Hour, EarliestOwn: time.Minute}}, nil))
	due := func(name string, after, deadline time.Duration, run string) *framework.QueuedPodInfo {
		e := waitingPod(t, name, 0, after, "own")
		e.GetPod().Annotations = map[string]string{wellknown.DeadlineKey: noon.Add(deadline).Format(time.RFC3339),
			wellknown.RunTimeKey: run}
		return e
	}
	// The least slack comes first, not the first deadline.
	first, second := due("b", time.Second, 5*time.Hour, "4h50m"), due("a", 0, 4*time.Hour, "3h")
	if !p.Less(first, second) || p.Less(second, first) {
		t.Error("the pod that has to start first does not come first")
	}
}

func TestAClassAgesFromAnotherPriority(t *testing.T) {
	t.Parallel()
	p := queueOf(sla.NewOrder([]sla.Class{{Name: "prompt", PriorityClasses: []string{"prompt"},
		AgeFrom: ptr.To[int32](20)}}, &sla.Ageing{PerHour: 1, UpTo: 100}))
	prompt, plain := waitingPod(t, "prompt", 0, 10*time.Hour-time.Second, "prompt"), waitingPod(t, "plain", 10, 0, "")
	if p.Less(prompt, plain) {
		t.Error("a pod took a class that is not open to its PriorityClass")
	}
	prompt.GetPod().Spec.PriorityClassName = "prompt"
	if !p.Less(prompt, plain) {
		t.Error("the pod of the class that ages from 20 comes after one of priority 10 that is less than 10 hours older")
	}
}

func TestNativeGroupsAgeFromTheirCreation(t *testing.T) {
	t.Parallel()
	p := queueOf(sla.NewOrder(nil, &sla.Ageing{PerHour: 1, UpTo: 100}))
	native := &framework.QueuedPodGroupInfo{
		PodGroupInfo: &framework.PodGroupInfo{PodGroup: &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "native", CreationTimestamp: metav1.NewTime(noon)}}},
		QueueingParams: framework.QueueingParams{Timestamp: noon.Add(24 * time.Hour)},
	}
	if later := waitingPod(t, "later", 0, time.Hour, ""); !p.Less(native, later) || p.Less(later, native) {
		t.Error("a native group that was tried a day after its creation comes after a pod that was created an hour after it")
	}
}

// drawnOrder draws the classes of a queue, or none.
func drawnOrder(t *rapid.T) *sla.Order {
	if rapid.Bool().Draw(t, "no classes") {
		return nil
	}
	var classes []sla.Class
	for i := range rapid.IntRange(0, 3).Draw(t, "classes") {
		c := sla.Class{Name: string(rune('a' + i)),
			Deadline: time.Duration(rapid.IntRange(0, 3).Draw(t, "deadline")) * time.Hour}
		if rapid.Bool().Draw(t, "ages from elsewhere") {
			c.AgeFrom = ptr.To(int32(rapid.IntRange(-2, 2).Draw(t, "from")))
		}
		classes = append(classes, c)
	}
	var ageing *sla.Ageing
	if rapid.Bool().Draw(t, "ages") {
		ageing = &sla.Ageing{PerHour: int32(rapid.IntRange(1, 3).Draw(t, "per hour")),
			UpTo: int32(rapid.IntRange(-1, 2).Draw(t, "up to"))}
	}
	return sla.NewOrder(classes, ageing)
}

func drawnPod(t *rapid.T, name string) *framework.QueuedPodInfo {
	e := waitingPod(t, name, int32(rapid.IntRange(-2, 3).Draw(t, "priority")),
		time.Duration(rapid.IntRange(0, 4).Draw(t, "after"))*time.Hour,
		rapid.SampledFrom([]string{"", "a", "b", "c", "unknown"}).Draw(t, "class"))
	e.Timestamp = noon.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "queued")) * time.Hour)
	return e
}

// The queue is a heap, which needs a strict order of all that may be in it.
func TestTheQueueHasAStrictOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := queueOf(drawnOrder(t))
		a, b, c := drawnPod(t, "a"), drawnPod(t, "b"), drawnPod(t, "c")
		switch {
		case p.Less(a, a):
			t.Fatal("a pod comes before itself")
		case p.Less(a, b) == p.Less(b, a):
			t.Fatal("two pods have no order")
		case p.Less(a, b) && p.Less(b, c) && !p.Less(a, c):
			t.Fatal("the order goes round in a circle")
		}
	})
}

// Where there are no classes, the stock order holds, whatever the pods say.
func TestWithoutClassesTheOrderIsTheStockOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, stock := queueOf(nil), &queuesort.PrioritySort{}
		a, b := drawnPod(t, "a"), drawnPod(t, "b")
		if stock.Less(a, b) && !p.Less(a, b) || stock.Less(b, a) && !p.Less(b, a) {
			t.Fatalf("stock %t and %t, ours %t", stock.Less(a, b), stock.Less(b, a), p.Less(a, b))
		}
	})
}

// The order of two pods does not change with what happens to them in the queue, but for ties within a second.
func TestTheOrderOutlastsAttempts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		order := drawnOrder(t)
		if order == nil {
			t.Skip("the stock order is by attempts")
		}
		p := queueOf(order)
		a, b := drawnPod(t, "a"), drawnPod(t, "b")
		if ka, kb := p.key(a), p.key(b); !ka.Less(kb) && !kb.Less(ka) {
			t.Skip("a tie")
		}
		before := p.Less(a, b)
		a.Timestamp, a.Attempts = a.Timestamp.Add(time.Duration(rapid.IntRange(1, 1000).Draw(t, "hours"))*time.Hour), 3
		if p.Less(a, b) != before {
			t.Fatal("an attempt has changed the order")
		}
	})
}

// starve puts a pod into the queue behind a stream of others; more come than are taken out, and returns how many come
// before it, and false if it still waits after a number of them.
func starve(p queue, victim *framework.QueuedPodInfo, better func(n int) *framework.QueuedPodInfo, most int) (int,
	bool) {
	queue := heap.New(func(e *framework.QueuedPodInfo) string { return e.GetPod().Name },
		func(a, b *framework.QueuedPodInfo) bool { return p.Less(a, b) })
	queue.AddOrUpdate(victim)
	came := 0
	for taken := range most {
		for range 2 {
			queue.AddOrUpdate(better(came))
			came++
		}
		if e, err := queue.Pop(); err == nil && e == victim {
			return taken, true
		}
	}
	return most, false
}

// With ageing, nothing at or below its highest priority waits forever: not behind a stream of pods of any class and
// any such priority that is faster than the queue. Of a stream of a pod a minute those come first that are created
// within the difference of the waits, and no more.
func TestNothingThatAgesStarves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		classes := []sla.Class{
			{Name: "a", Deadline: time.Duration(rapid.IntRange(0, 120).Draw(t, "deadline of a")) * time.Minute},
			{Name: "b", Deadline: time.Duration(rapid.IntRange(1, 120).Draw(t, "deadline of b")) * time.Minute},
			{Name: "c", AgeFrom: ptr.To(int32(rapid.IntRange(-5, 5).Draw(t, "from")))},
		}
		upTo := int32(rapid.IntRange(0, 10).Draw(t, "up to"))
		order := sla.NewOrder(classes, &sla.Ageing{PerHour: int32(rapid.IntRange(1, 10).Draw(t, "per hour")), UpTo: upTo})
		p := queueOf(order)
		class := rapid.SampledFrom([]string{"", "a", "b", "c"})
		priority := rapid.Int32Range(-5, upTo)
		victim := waitingPod(t, "victim", priority.Draw(t, "priority"), 0, class.Draw(t, "class"))
		kinds := make([]*framework.QueuedPodInfo, rapid.IntRange(1, 3).Draw(t, "kinds"))
		most := 0
		for i := range kinds {
			kinds[i] = waitingPod(t, "kind", priority.Draw(t, "better priority"), 0, class.Draw(t, "better class"))
			ahead := p.key(victim).Wait - p.key(kinds[i]).Wait
			most = max(most, int(ahead/time.Minute)+1)
		}
		stream := func(n int) *framework.QueuedPodInfo {
			kind := kinds[n%len(kinds)].GetPod()
			return waitingPod(t, fmt.Sprintf("better-%d", n), *kind.Spec.Priority, time.Duration(n)*time.Minute,
				kind.Labels[wellknown.SLAClassKey])
		}
		if before, ok := starve(p, victim, stream, most+1); !ok {
			t.Fatalf("the pod still waits after %d others; want at most %d before it", before, most)
		}
	})
}
