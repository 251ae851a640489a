package hold

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/wellknown"
)

// heldBook is what is kept, one line for each hold, in the simplest way: the model of Holds.
type heldBook struct {
	lines []Hold
	next  int
}

// number names a hold: each is for a pod of its own.
func number(o Hold) apitypes.UID { return o.Info.GetPod().UID }

// drop takes the lines out for which ends holds, and returns them.
func (b *heldBook) drop(ends func(Hold) bool) (dropped []Hold) {
	var rest []Hold
	for _, o := range b.lines {
		if ends(o) {
			dropped = append(dropped, o)
		} else {
			rest = append(rest, o)
		}
	}
	b.lines = rest
	return dropped
}

func (b *heldBook) numbers(of func(Hold) bool) []apitypes.UID {
	found := []apitypes.UID{}
	for _, o := range b.lines {
		if of(o) {
			found = append(found, number(o))
		}
	}
	slices.Sort(found)
	return found
}

func numbers(holds []Hold) []apitypes.UID {
	return (&heldBook{lines: holds}).numbers(func(Hold) bool { return true })
}

// draw makes up a hold for the gang.
func (b *heldBook) draw(t *rapid.T, id gang.ID, kind Kind, now time.Time) Hold {
	b.next++
	o := Hold{To: id, Kind: kind, Priority: rapid.Int32Range(0, 2).Draw(t, "priority"),
		Info: infoOf(t, cpuPod(fmt.Sprint(b.next), "1")),
		Node: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node"),
		Role: rapid.SampledFrom([]string{"", "leader"}).Draw(t, "role")}
	if rapid.IntRange(0, 3).Draw(t, "for a certain member") == 0 {
		o.Member = gang.UID(fmt.Sprint("p", rapid.IntRange(0, 2).Draw(t, "member")))
	}
	if rapid.Bool().Draw(t, "for a time") {
		o.Until = now.Add(time.Duration(rapid.IntRange(1, 5).Draw(t, "seconds")) * time.Second)
	}
	return o
}

// take is Holds.Take, and reports whether what is taken was on another node.
func (b *heldBook) take(id gang.ID, pod *v1.Pod, node string) (elsewhere bool) {
	taken := -1
	for i, o := range b.lines {
		switch {
		case o.To != id:
		case o.Member == gang.UID(pod.UID):
			return false
		case o.Member != "" || o.Role != "" && o.Role != pod.Labels[wellknown.RoleKey]:
		case taken < 0, o.Node == node && b.lines[taken].Node != node:
			taken = i
		}
	}
	if taken < 0 {
		return false
	}
	elsewhere = b.lines[taken].Node != node
	b.lines = slices.Delete(slices.Clone(b.lines), taken, taken+1)
	return elsewhere
}

// replace is Holds.Keep, and reports whether something ends: fewer of the kind are kept on some node.
func (b *heldBook) replace(id gang.ID, kind Kind, kept []Hold) (ended bool) {
	left := map[string]int{}
	for _, o := range b.drop(func(o Hold) bool { return o.To == id && o.Kind == kind }) {
		left[o.Node]++
	}
	for _, o := range kept {
		left[o.Node]--
	}
	b.lines = append(b.lines, kept...)
	return slices.ContainsFunc(slices.Collect(maps.Values(left)), func(n int) bool { return n > 0 })
}

// follow is Holds.Follow, and reports whether fewer things are kept on some node.
func (b *heldBook) follow(id gang.ID, plan []gang.Assignment) (ended bool) {
	left := map[string]int{}
	for i := range b.lines {
		o := &b.lines[i]
		for _, a := range plan {
			if o.To == id && o.Kind == AfterEviction && o.Member == a.UID {
				left[o.Node]++
				left[a.Node]--
				o.Node = a.Node
			}
		}
	}
	return left["a"] > 0 || left["b"] > 0
}

// nodes are where holds are, by their numbers.
func nodes(holds []Hold) map[apitypes.UID]string {
	at := map[apitypes.UID]string{}
	for _, o := range holds {
		at[number(o)] = o.Node
	}
	return at
}

// Whatever is kept, moved, taken, put off and let go, all questions have the same answers as a list has, and a pod that
// was turned away is woken whenever something ends that is not taken on its own node.
func TestHoldsAgainstAList(t *testing.T) {
	t.Parallel()
	gangs := []gang.ID{{Namespace: "ns", Name: "g"}, {Namespace: "ns", Name: "h"}}
	away := gang.Ref{Namespace: "ns", Name: "away", UID: "away"}
	rapid.Check(t, func(t *rapid.T) {
		now, book := time.Now(), &heldBook{}
		p := testHolds(&gang.NewLedger(time.Minute, nil).Cycles)
		inbox := p.Gate.Away.Inbox
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			p.Gate.Away.pod(away)
			id := rapid.SampledFrom(gangs).Draw(t, "gang")
			kind := rapid.SampledFrom([]Kind{AfterEviction, ForReturn, ForRest, forTurn}).Draw(t, "kind")
			ended := false
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0, 1:
				o := book.draw(t, id, kind, now)
				p.Add(o)
				book.lines = append(book.lines, o)
			case 2:
				kept := make([]Hold, rapid.IntRange(0, 3).Draw(t, "holds"))
				for i := range kept {
					kept[i] = book.draw(t, id, kind, now)
				}
				ended = book.replace(id, kind, kept)
				p.Keep(id, kind, kept)
			case 3:
				ended = len(book.drop(func(o Hold) bool { return o.To == id && o.Kind == kind })) > 0
				p.Drop(func(o Hold) bool { return o.Kind == kind }, id)
			case 4:
				pod := st.MakePod().Namespace("ns").Name("p").UID(fmt.Sprint("p", rapid.IntRange(0, 2).Draw(t, "pod"))).
					Label(schedulingv1alpha1.PodGroupLabel, id.Name).
					Label(wellknown.RoleKey, rapid.SampledFrom([]string{"leader", "worker"}).Draw(t, "role")).Obj()
				ended = book.take(id, pod, "a")
				p.Take(pod, "a")
			case 5:
				now = now.Add(time.Second)
				ended = len(book.drop(func(o Hold) bool { return !o.Until.IsZero() && now.After(o.Until) })) > 0
				p.Expire(now)
			case 6:
				for i := range book.lines {
					if o := &book.lines[i]; o.To == id {
						ended = true // what is put off does not count
						if o.Kind == AfterEviction {
							o.after = []*v1.Pod{}
						}
					}
				}
				p.Postpone(id, []*v1.Pod{})
			case 7:
				plan := []gang.Assignment{{UID: "p0", Node: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "planned")},
					{UID: "p1", Node: "a"}}
				ended = book.follow(id, plan)
				p.Follow(id, plan)
			}
			if woken := len(inbox.Take().Activations) > 0; woken != ended {
				t.Fatalf("a pod that was turned away is woken: %t, want %t", woken, ended)
			}
			p.Gate.Away.Forget(away.UID)
			for _, id := range gangs {
				all := book.numbers(func(o Hold) bool { return o.To == id })
				if diff := cmp.Diff(all, numbers(p.To(id))); diff != "" {
					t.Fatalf("kept for %s (-want +got):\n%s", id, diff)
				}
				of := slices.DeleteFunc(slices.Clone(book.lines), func(o Hold) bool { return o.To != id })
				if diff := cmp.Diff(nodes(of), nodes(p.To(id))); diff != "" {
					t.Fatalf("where something is kept for %s (-want +got):\n%s", id, diff)
				}
				if slices.Contains(p.Gangs(), id) != (len(all) > 0) {
					t.Fatalf("%s is among those for which something is kept: %v", id, p.Gangs())
				}
				others := book.numbers(func(o Hold) bool { return o.To != id && o.Priority >= 1 && o.after == nil })
				if diff := cmp.Diff(others, numbers(p.ToOthers(id, 1))); diff != "" {
					t.Fatalf("kept for others than %s (-want +got):\n%s", id, diff)
				}
			}
		}
	})
}
