package preempt

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/hold"
)

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
	case p.plan.Reason != "":
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
	p.evictor.Holds.Drop(func(hold.Hold) bool { return true }, waits)
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

// The evictor does for a gang what a record of all that has happened says: it never runs two searches at a time, uses
// no plan that is too old, chooses no others before the awaited pods are late, forgets what it knows when they have
// gone, and ends.
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
