package address

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What a plan counts for other pods is what Reserve then takes: of several subnets on one node the first that has
// addresses.
func TestAPlanCountsWhatReserveTakes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ranges := []string{"10.0.0.1", "10.0.1.1-10.0.1.2", "10.0.2.1", "10.0.3.1-10.0.3.3"}
		domains := []Domain{{}, {"rack", "a"}, {"rack", "b"}, {"zone", "z"}}
		var subnets []subnet
		for _, r := range ranges {
			subnets = append(subnets, in("", r))
		}
		p := pool(t, "p", subnets...)
		for i := range p.Domains {
			p.Domains[i] = rapid.SampledFrom(domains).Draw(rt, "domain")
		}
		l := ledgerOf(p)
		nodes := []map[string]string{{"rack": "a", "zone": "z"}, {"rack": "b", "zone": "z"}, {"rack": "b"}, {}}
		plan, reason := l.Plan(ask("last", "p"))
		if reason != "" {
			rt.Fatal(reason)
		}
		for i := range 6 {
			pod, at := fmt.Sprint("pod-", i), rapid.SampledFrom(nodes).Draw(rt, "node")
			refusal, _ := plan.Refuses(at)
			routable := slices.ContainsFunc(p.Domains, func(d Domain) bool { return d.Contains(at) })
			if outside := strings.HasPrefix(refusal, "node(s) outside"); outside == routable {
				rt.Fatalf("pod %d on %v: the plan says %q; the pool is routable there: %t", i, at, refusal, routable)
			}
			if refusal == "" {
				plan.Add(l, ask(pod, "p"), at)
			}
			_, full := l.Reserve(ask(pod, "p"), at)
			if (refusal == "") != (full == "") {
				rt.Fatalf("pod %d on %v: the plan says %q, Reserve %q; subnets %v", i, at, refusal, full, p.Domains)
			}
		}
	})
}

func TestAPodThatIsCountedTwiceIsMoved(t *testing.T) {
	t.Parallel()
	l := ledgerOf(pool(t, "racks", in("a", "10.0.0.1"), in("b", "10.0.1.1")))
	plan, _ := l.Plan(ask("p", "racks"))
	plan.Add(l, ask("q", "racks"), rackA)
	plan.Add(l, ask("q", "racks"), rackB)
	if reason, _ := plan.Refuses(rackA); reason != "" {
		t.Errorf("where the pod was counted first: %s", reason)
	}
	if reason, planned := plan.Refuses(rackB); reason == "" || !planned {
		t.Errorf("where it is counted now: %q, planned: %t", reason, planned)
	}
	plan.Remove("q")
	plan.Remove("q")
	if reason, _ := plan.Refuses(rackB); reason != "" {
		t.Errorf("when it is removed: %s", reason)
	}
}

// What is told of an earlier reservation of an address, after a later one has come, ends neither that nor its pod's.
func TestTheEndOfAnEarlierReservation(t *testing.T) {
	t.Parallel()
	a := netip.MustParseAddr("10.0.0.1")
	old := Reservation{Address: a, Object: "old", Pod: named("p")}
	fresh := Reservation{Address: a, Object: "new", Pod: named("q")}
	l := NewLedger()
	for i, step := range []struct {
		tell Reservation
		news bool
	}{{old, true}, {old, false}, {fresh, true}} {
		if news := l.Observe(step.tell); news != step.news {
			t.Errorf("step %d is news: %t, want %t", i, news, step.news)
		}
	}
	if l.Forget(a, "old") || l.HasReservation(named("p")) || !l.HasReservation(named("q")) {
		t.Error("the end of the old reservation ends the new one")
	}
}
