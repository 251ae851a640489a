package preempt

import (
	"errors"
	"fmt"
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
	"berth.dev/berth/pkg/gang/hold"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/waiting"
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
	p.evictor = &Evictor{Members: known, Holds: holds, Inbox: inbox, Sources: Sources{Budgets: p, Loss: &Loss{}}}
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
	time.Sleep(d) //nolint:forbidigo // virtual time
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
	found.Reason = ""
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
