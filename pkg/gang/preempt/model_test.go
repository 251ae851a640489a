package preempt

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/eviction"
	"berth.dev/berth/pkg/gang/hold"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/waiting"
	"berth.dev/berth/pkg/gang/work"
)

// preemptor is a gang that waits, with an evictor, and what has happened to it, written down in the simplest way: the
// model of its attempt.
type preemptor struct {
	policylisters.PodDisruptionBudgetLister
	framework.Framework

	t       *rapid.T
	bubble  *testing.T
	evictor *Evictor
	request *request
	pods    cache.Indexer
	next    int
	// proceed lets the searches and the requests to the API server end that have begun.
	proceed chan struct{}
	// running counts the searches that have begun. Mistake is what was wrong with one, or is wrong at all.
	running int
	mistake string

	// known is set while anything is known of evictions for the gang, and kept while capacity is kept for it.
	known, kept bool
	searching   bool
	notBefore   time.Time
	plan        *proposal
	said        findings
	rejected    int
	// awaited have to go until due, which is zero while the API server is asked to evict them. Late is set once others
	// may be chosen.
	awaited []*v1.Pod
	due     time.Time
	late    bool
	// quiet is since when no pod is awaited, zero while some are.
	quiet time.Time
	// seen counts what has happened in all runs together.
	seen map[string]int
}

// waits is a gang that waits.
var waits = gang.ID{Namespace: "ns", Name: "g"}

func newPreemptor(t *rapid.T, bubble *testing.T, seen map[string]int) *preemptor {
	p := &preemptor{t: t, bubble: bubble, seen: seen, proceed: make(chan struct{}),
		pods:    cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
		request: &request{name: "gang " + waits.String(), id: waits}}
	inbox, known := waiting.NewInbox(), &members.Directory{Lister: corelisters.NewPodLister(p.pods)}
	holds := &hold.Holds{Gate: hold.Gate{Members: known, Cycles: &gang.NewLedger(time.Minute, nil).Cycles}}
	holds.Gate.Away.Inbox = inbox
	p.evictor = &Evictor{Members: known, Holds: holds, Inbox: inbox, Sources: Sources{Budgets: p, Loss: &work.Loss{}}}
	return p
}

// draw returns one of n numbers, each about as often: rapid prefers small ones, and shrinks to 0.
func (p *preemptor) draw(n int, what string) int {
	return int(rapid.Uint64().Draw(p.t, what) * 0x9e3779b97f4a7c15 >> 33 % uint64(n))
}

// List is a search for pods to evict: it reads the budgets first.
func (p *preemptor) List(labels.Selector) ([]*policyv1.PodDisruptionBudget, error) {
	p.running++
	switch now := time.Now(); {
	case p.running > 1:
		p.mistake = "two searches at a time"
	case now.Before(p.notBefore):
		p.mistake = "a search that does not wait for pods to be bound"
	case len(p.left()) > 0 && (p.due.IsZero() || now.Before(p.due)):
		p.mistake = "a search for others before the awaited pods are late"
	}
	<-p.proceed
	p.running--
	return nil, errors.New("there are none")
}

// ClientSet is of an API server that takes its time, and has no pods.
func (p *preemptor) ClientSet() clientset.Interface {
	<-p.proceed
	return fake.NewClientset()
}

// left are the awaited pods that are there.
func (p *preemptor) left() []*v1.Pod {
	return slices.DeleteFunc(slices.Clone(p.awaited), func(pod *v1.Pod) bool {
		_, there, err := p.pods.Get(pod)
		return err != nil || !there
	})
}

// fail ends the test. Rapid does not know the goroutine of the bubble.
func (p *preemptor) fail(format string, args ...any) {
	p.mistake = fmt.Sprintf(format, args...)
	panic(p.mistake)
}

// pass lets time pass, and what runs in the background come as far as it can.
func (p *preemptor) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// finish lets the searches and requests end that have begun. The gang is tried again when any does, and has a plan if a
// search found one.
func (p *preemptor) finish() {
	p.evictor.Inbox.Take()
	searched, evicted := p.running > 0, len(p.awaited) > 0 && p.due.IsZero()
	close(p.proceed)
	p.proceed = make(chan struct{})
	p.pass(0)
	if searched {
		p.searching = false
		p.plan = p.evictor.work[p.request.name].found
		p.fill(p.plan)
	}
	if evicted {
		p.await()
	}
	if (searched || evicted) && !slices.Contains(p.evictor.Inbox.Take().Found, waits) {
		p.fail("the gang is not tried again when a search or an eviction has ended")
	}
}

// fill draws what a search has found.
func (p *preemptor) fill(found *proposal) {
	if found == nil {
		p.fail("nothing is known of what a search has found")
	}
	if p.draw(10, "nothing helps") == 0 {
		return
	}
	found.Outcome = eviction.RoomAlready
	for i := range p.draw(4, "pods that have to go") {
		pod := podWithGrace(fmt.Sprint("p", p.next), int64(p.draw(60, "grace period")))
		p.next++
		if i > 0 && p.draw(3, "terminates anyway") == 0 {
			pod.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(10 * time.Second)}
			found.leaving = append(found.leaving, pod)
		} else {
			found.victims = append(found.victims, pod)
		}
		if err := p.pods.Add(pod); err != nil {
			p.fail("%v", err)
		}
	}
}

// begin writes down that all is as at the start.
func (p *preemptor) begin() {
	p.known, p.searching, p.plan, p.said, p.rejected = true, false, nil, findings{}, 0
	p.awaited, p.due, p.late, p.quiet = nil, time.Time{}, false, time.Now()
}

// await writes down that the pods have to go from now on.
func (p *preemptor) await() {
	for _, pod := range p.awaited {
		gone := time.Now().Add(time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second)
		if pod.DeletionTimestamp != nil {
			gone = pod.DeletionTimestamp.Time
		}
		if due := gone.Add(30 * time.Second); due.After(p.due) {
			p.due = due
		}
	}
}

// giveUp writes down that the attempt ends, and that nothing is kept any more. While pods are late it begins again.
func (p *preemptor) giveUp() {
	stays := p.late && len(p.left()) > 0
	if stays {
		p.seen["begins again while pods are late"]++
		p.plan, p.said, p.rejected = nil, findings{}, 0
		return
	}
	p.known, p.kept = false, false
	p.seen["gives up"]++
}

// search writes down that a search begins after a pause.
func (p *preemptor) search(pause time.Duration) {
	p.searching, p.plan, p.notBefore = true, nil, time.Now().Add(pause)
}

// tooLate writes down that others may be chosen, and makes sure that what is kept does not count until the pods have
// gone.
func (p *preemptor) tooLate() {
	p.late, p.quiet = true, time.Now()
	p.seen["pods are late"]++
	if len(p.evictor.Holds.ToOthers(gang.ID{}, 0)) > 0 {
		p.fail("what is kept counts although something holds the pods")
	}
}

// cycle is a scheduling cycle in which the gang does not fit.
func (p *preemptor) cycle() {
	now, r := time.Now(), *p.request
	if p.request = &r; p.draw(8, "members come") == 0 {
		p.request.need.Total++
	}
	if !p.known {
		p.begin()
	}
	found, why := p.evictor.decide(p.bubble.Context(), p.request, now)
	waiting := len(p.awaited) > 0 && !p.late
	switch {
	case waiting && len(p.left()) == 0:
		p.seen["all have gone"]++
		p.begin()
	case waiting && (p.due.IsZero() || now.Before(p.due)):
		p.expect(found == nil && why == waitingFor(len(p.left())), "waits for the pods", why)
		return
	case waiting:
		p.tooLate()
	case p.searching:
		p.expect(found == nil && why == "looking for pods to evict", "waits for the search", why)
		return
	case p.plan == nil:
	case now.Sub(p.plan.at) >= 30*time.Second:
		p.seen["a plan is too old"]++
	case p.plan.request.need.Total != p.request.need.Total:
		p.seen["a plan is of other members"]++
	case p.plan.Outcome == eviction.NoRoom:
		p.expect(found == nil, "gives up", why)
		p.plan = nil
		p.giveUp()
		return
	default:
		p.expect(found == p.plan, "uses the plan", why)
		p.plan = nil
		if p.draw(8, "the loop looks within the cycle") == 0 {
			p.tidy()
		}
		p.check(found)
		return
	}
	p.expect(found == nil && why == "looking for pods to evict", "searches", why)
	p.search(0)
	p.pass(0)
}

func (p *preemptor) expect(is bool, what, why string) {
	if !is {
		p.fail("want that it %s; it says %q", what, why)
	}
}

// check is the end of a cycle in which a plan is checked.
func (p *preemptor) check(found *proposal) {
	switch p.draw(12, "check") {
	case 0, 1, 2, 3:
		class := []string{"a", "b", "c"}[p.draw(3, "class")]
		p.reject(findings{gang.Refusal{Class: class, Node: "n"}: true}, 0)
	case 4:
		p.reject(findings{}, 0)
	case 5, 6:
		p.reject(nil, 100*time.Millisecond<<p.rejected)
	case 7:
		p.evictor.refuse(p.request, "")
		if p.known {
			p.giveUp()
		}
	default:
		p.accept(found)
	}
	p.pass(0)
}

// reject is the end of a cycle in which the plan does not help, or is out of date.
func (p *preemptor) reject(said findings, pause time.Duration) {
	p.evictor.searchAgain(p.bubble.Context(), p.request, said)
	if !p.known {
		return
	}
	maps.Copy(p.said, said)
	if p.rejected++; p.rejected == 4 {
		p.seen["nothing helps"]++
	}
	if p.rejected == 4 || said != nil && len(said) == 0 {
		p.giveUp()
		return
	}
	p.search(pause)
}

// accept is the end of a cycle in which the plan helps.
func (p *preemptor) accept(found *proposal) {
	p.begin()
	if found.idle() {
		p.evictor.await(p.request, found)
		return
	}
	info, err := hold.InfoOf(podWithGrace("member", 0))
	if err != nil {
		p.fail("%v", err)
	}
	kept := hold.Hold{To: waits, Kind: hold.AfterEviction, Node: "n", Info: info}
	p.evictor.Holds.Keep(waits, hold.AfterEviction, []hold.Hold{kept})
	p.seen["pods are evicted"]++
	p.kept, p.awaited, p.quiet = true, found.going(), time.Time{}
	if len(found.victims) > 0 {
		p.evictor.evict(p.bubble.Context(), p, p.request, found, "")
		return
	}
	p.evictor.await(p.request, found)
	p.await()
}

// tidy is a look of the loop while the gang waits.
func (p *preemptor) tidy() {
	now := time.Now()
	p.evictor.Inbox.Take()
	p.evictor.Tidy(now, func(gang.ID) bool { return true })
	over := !p.due.IsZero() && !now.Before(p.due)
	switch {
	case !p.known:
	case p.late && len(p.left()) > 0:
		p.quiet = now
	case !p.quiet.IsZero():
		if now.Sub(p.quiet) > time.Minute && !p.searching {
			p.giveUp()
		}
	case len(p.left()) == 0 && !p.due.IsZero():
		p.quiet = now
	case over:
		p.tooLate()
		if !slices.Contains(p.evictor.Inbox.Take().Found, waits) {
			p.fail("the gang is not tried again when pods are late")
		}
	}
}

// starts is a look of the loop when the gang does not wait any more. Then it waits again.
func (p *preemptor) starts() {
	p.pass(time.Second)
	p.finish()
	p.evictor.Tidy(time.Now(), func(gang.ID) bool { return false })
	p.evictor.Holds.Drop(waits, func(hold.Hold) bool { return true })
	p.known, p.kept = false, false
}

// compare holds what the evictor knows against what has happened.
func (p *preemptor) compare() {
	w := p.evictor.work[p.request.name]
	kept := len(p.evictor.Holds.To(waits)) > 0
	switch {
	case p.mistake != "":
		p.fail("%s", p.mistake)
	case kept != p.kept:
		p.fail("something is kept: %t, want %t", kept, p.kept)
	case (w != nil) != p.known:
		p.fail("something is known: %t, want %t", w != nil, p.known)
	case p.known && w.searching != p.searching:
		p.fail("a search runs: %t, want %t", w.searching, p.searching)
	case p.known && !maps.Equal(w.said, p.said):
		p.fail("filters are taken to have said %v, want %v", w.said, p.said)
	}
}

// step does one random thing.
func (p *preemptor) step() {
	switch p.draw(14, "step") {
	case 0, 1, 2, 3:
		p.cycle()
	case 4, 5, 6:
		p.finish()
	case 7:
		if there := p.left(); len(there) > 0 {
			if err := p.pods.Delete(there[p.draw(len(there), "pod")]); err != nil {
				p.fail("%v", err)
			}
		}
	case 8, 9:
		p.pass(time.Duration(p.draw(45_000, "ms")) * time.Millisecond)
	case 10, 11, 12:
		p.tidy()
	case 13:
		if p.draw(4, "starts") == 0 {
			p.starts()
		}
	}
	p.compare()
}

// end lets all pods go. After some time nothing is known and kept.
func (p *preemptor) end() {
	p.pass(time.Second)
	p.finish()
	for _, pod := range p.awaited {
		if err := p.pods.Delete(pod); err != nil {
			p.fail("%v", err)
		}
	}
	for range 2 {
		p.tidy()
		p.pass(patience + 1)
	}
	p.tidy()
	if p.compare(); p.known || p.kept {
		p.fail("after all pods have gone, something is known: %t, kept: %t", p.known, p.kept)
	}
}

// The evictor does for a gang what a record of all that has happened says: it never runs two searches at a time, uses no
// plan that is too old, chooses no others before the awaited pods are late, forgets what it knows when they have gone,
// and ends.
func TestEvictorAgainstARecord(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	t.Cleanup(func() {
		for _, what := range []string{"a plan is too old", "a plan is of other members", "pods are evicted", "all have gone",
			"pods are late", "begins again while pods are late", "nothing helps", "gives up"} {
			if seen[what] == 0 {
				t.Errorf("it was never seen that %s: the model does not do what it is for", what)
			}
		}
	})
	rapid.Check(t, func(r *rapid.T) {
		var p *preemptor
		var ended any
		synctest.Test(t, func(bubble *testing.T) {
			p = newPreemptor(r, bubble, seen)
			defer func() {
				ended = recover()
				p.pass(time.Second)
				close(p.proceed)
			}()
			for range rapid.IntRange(300, 600).Draw(r, "steps") {
				p.step()
			}
			p.end()
		})
		if p.mistake != "" {
			r.Fatal(p.mistake)
		}
		if ended != nil {
			panic(ended) // rapid has no more to draw
		}
	})
}
