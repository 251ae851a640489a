package address

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth.dev/berth/test/harness/require"
)

var (
	rackA = map[string]string{"rack": "a"}
	rackB = map[string]string{"rack": "b"}
)

// subnet is addresses in a rack, or on any node.
type subnet struct {
	rack   string
	ranges []string
}

func in(rack string, ranges ...string) subnet { return subnet{rack, ranges} }

func pool(t testing.TB, name string, subnets ...subnet) *Pool {
	t.Helper()
	p := &Pool{Name: name}
	for i, s := range subnets {
		d := Domain{}
		if s.rack != "" {
			d = Domain{"rack", s.rack}
		}
		p.Domains = append(p.Domains, d)
		for _, text := range s.ranges {
			r, err := ParseRange(text)
			if err == nil {
				err = p.Add(i, r)
			}
			require.NoError(t, err)
		}
	}
	return p
}

// ledgerOf returns a ledger with these pools.
func ledgerOf(pools ...*Pool) *Ledger {
	l := NewLedger()
	l.SetPools(pools)
	return l
}

func named(pod string) PodName { return PodName{Namespace: "default", Name: pod} }

func ask(pod, pool string) *Ask { return &Ask{UID: pod, Pod: named(pod), Pool: pool} }

func TestWhatAPodIsPromised(t *testing.T) {
	t.Parallel()
	held := Reservation{Address: netip.MustParseAddr("10.0.0.9"), Object: "u", Domain: Domain{"rack", "b"},
		Pod: named("p")}
	tests := map[string]struct {
		prepare func(l *Ledger)
		ask     *Ask
		labels  map[string]string
		want    string
		reason  string
	}{
		"the lowest address of the node's domain": {ask: ask("p", "racks"), labels: rackB, want: "10.0.1.1"},
		"the next one if the first is reserved": {prepare: func(l *Ledger) {
			l.Observe(Reservation{Address: netip.MustParseAddr("10.0.0.1"), Object: "x", Pod: named("other")})
		}, ask: ask("p", "racks"), labels: rackA, want: "10.0.0.2"},
		"its reservation, whatever the pool": {prepare: func(l *Ledger) { l.Observe(held) },
			ask: ask("p", "racks"), labels: rackB, want: "10.0.0.9"},
		"its reservation without a pool": {prepare: func(l *Ledger) { l.Observe(held) }, ask: ask("p", ""),
			labels: rackB, want: "10.0.0.9"},
		"nothing where its reservation is not routed": {prepare: func(l *Ledger) { l.Observe(held) },
			ask: ask("p", "racks"), labels: rackA, reason: "node(s) where the pod's address is not routable: 10.0.0.9 (rack=b)"},
		"nothing while its reservation is promised to an earlier pod": {prepare: func(l *Ledger) {
			l.Observe(held)
			l.Reserve(&Ask{UID: "before", Pod: named("p")}, rackB)
		}, ask: ask("p", ""), labels: rackB,
			reason: "address 10.0.0.9 is promised to an earlier pod, whose binding has not ended"},
		"nothing while its reservation was promised to another pod before it was made": {prepare: func(l *Ledger) {
			l.Reserve(ask("q", "racks"), rackB)
			l.Observe(Reservation{Address: netip.MustParseAddr("10.0.1.1"), Object: "u", Pod: named("p")})
		}, ask: ask("p", ""), labels: rackB,
			reason: "address 10.0.1.1 is promised to an earlier pod, whose binding has not ended"},
		"nothing of a pool that does not exist": {ask: ask("p", "nil"), labels: rackA,
			reason: "there is no IPPool nil"},
		"nothing of a pool that is broken": {ask: ask("p", "broken"), labels: rackA,
			reason: "pool broken cannot be used: why"},
		"nothing of a pool of another namespace": {ask: ask("p", "closed"), labels: rackA,
			reason: "pool closed is not for pods of namespace default"},
		"nothing outside of the domains": {ask: ask("p", "racks"), labels: nil,
			reason: "node(s) outside the domains of pool racks"},
		"nothing of a domain that is full": {prepare: func(l *Ledger) { l.Reserve(ask("q", "racks"), rackB) },
			ask: ask("p", "racks"), labels: rackB, reason: "pool racks has no free address in domain rack=b"},
		"an address that was given back": {prepare: func(l *Ledger) {
			l.Reserve(ask("q", "racks"),
				rackB)
			l.Drop("q")
		}, ask: ask("p", "racks"), labels: rackB, want: "10.0.1.1"},
		"an address of a pool for every node": {ask: ask("p", "any"), want: "2001:db8::1"},
		"an address of a pool without enumerating it": {prepare: func(l *Ledger) { l.Reserve(ask("q", "any"), nil) },
			ask: ask("p", "any"), want: "2001:db8::2"},
		"the same address when it is reserved for good": {prepare: func(l *Ledger) { l.Reserve(ask("p", "racks"), rackA) },
			ask: ask("p", "racks"), labels: rackA, want: "10.0.0.1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closed := pool(t, "closed", in("", "10.9.0.0/24"))
			closed.Namespaces = []string{"secret"}
			l := ledgerOf(pool(t, "racks", in("a", "10.0.0.1-10.0.0.3"), in("b", "10.0.1.1")), closed,
				&Pool{Name: "broken", Problem: "why"}, pool(t, "any", in("", "2001:db8::/32")))
			if test.prepare != nil {
				test.prepare(l)
			}
			plan, reason := l.Plan(test.ask)
			if plan != nil {
				reason, _ = plan.Refuses(test.labels)
			}
			if reason != test.reason {
				t.Errorf("the plan says %q, want %q", reason, test.reason)
			}
			p, refusal := l.Reserve(test.ask, test.labels)
			if got := p.Address.String(); test.want != "" && got != test.want {
				t.Errorf("promised %s (%s), want %s", got, refusal, test.want)
			}
			if (refusal != "") != (test.reason != "") {
				t.Errorf("Reserve says %q, the plan says %q", refusal, reason)
			}
		})
	}
}

// Members of a gang are planned on the snapshot one after the other: each of them takes an address, and no other pod
// notices.
func TestPodsThatArePlannedTogetherTakeDifferentAddresses(t *testing.T) {
	t.Parallel()
	l := ledgerOf(pool(t, "racks", in("a", "10.0.0.1-10.0.0.2"), in("b", "10.0.1.1")))
	plan, reason := l.Plan(ask("p", "racks"))
	if reason != "" {
		t.Fatal(reason)
	}
	plan.Add(l, ask("q", "racks"), rackB)
	plan.Add(l, ask("q", "racks"), rackB)
	plan.Add(l, ask("other pool", "x"), rackA)
	clone := plan.Clone()
	clone.Add(l, ask("r", "racks"), rackA)
	clone.Add(l, ask("s", "racks"), rackA)
	for _, labels := range []map[string]string{rackA, rackB} {
		reason, planned := clone.Refuses(labels)
		if reason != "pool racks has no free address here but those planned for other pods" || !planned {
			t.Errorf("on %v the clone says %q, for planned pods: %t", labels, reason, planned)
		}
	}
	if reason, _ := plan.Refuses(rackA); reason != "" {
		t.Errorf("what the clone counts changes the plan: %s", reason)
	}
	clone.Remove("s")
	if reason, _ := clone.Refuses(rackA); reason != "" {
		t.Errorf("a pod that is taken off keeps its address: %s", reason)
	}
	for at, u := range l.Usages() {
		if u.Used != 0 {
			t.Errorf("a plan takes addresses of %v", at)
		}
	}
}

// Whatever happens in whatever order, no address is promised twice, each is freed once, and a ledger that is built of
// the objects alone counts the same.
func TestAnAddressIsNeverGivenTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		pools := []*Pool{pool(t, "p", in("a", "10.0.0.1-10.0.0.3", "10.0.0.6"), in("b", "10.0.1.0/30")),
			pool(t, "overlaps", in("", "10.0.0.3-10.0.0.4", "2001:db8::/64"))}
		l := ledgerOf(pools...)
		objects := map[netip.Addr]Reservation{}
		promised := map[string]Promise{}
		created := 0
		// The pods with an apostrophe are the next ones of the same name.
		pods := rapid.SampledFrom([]string{"u", "v", "w", "x", "y", "z", "u'", "v'", "w'"})
		nameOf := func(pod string) string { return strings.TrimSuffix(pod, "'") }
		known := func(rt *rapid.T) Reservation {
			var all []Reservation
			for _, h := range objects {
				all = append(all, h)
			}
			if len(all) == 0 {
				rt.Skip()
			}
			least := all[0]
			for _, h := range all {
				if h.Address.Less(least.Address) {
					least = h
				}
			}
			return least
		}
		rt.Repeat(map[string]func(*rapid.T){
			"reserve": func(rt *rapid.T) {
				pod := pods.Draw(rt, "pod")
				labels := rapid.SampledFrom([]map[string]string{rackA, rackB, nil}).Draw(rt, "labels")
				delete(promised, pod)
				wants := ask(nameOf(pod), rapid.SampledFrom([]string{"p", "overlaps"}).Draw(rt, "racks"))
				wants.UID = pod
				p, reason := l.Reserve(wants, labels)
				if reason != "" {
					return
				}
				if h, exists := objects[p.Address]; exists && (h.Pod.Name != nameOf(pod) || p.Object != h.Object) {
					rt.Fatalf("%s of %s is promised to %s", p.Address, h.Pod.Name, pod)
				}
				for other, q := range promised {
					if q.Address == p.Address || nameOf(other) == nameOf(pod) {
						rt.Fatalf("%s is promised to %s, and %s to %s", q.Address, other, p.Address, pod)
					}
				}
				if !p.Domain.Contains(labels) {
					rt.Fatalf("%s is in domain %s, the node has %v", p.Address, p.Domain, labels)
				}
				promised[pod] = p
			},
			"write": func(rt *rapid.T) {
				pod := pods.Draw(rt, "pod")
				p, ok := promised[pod]
				if !ok {
					rt.Skip()
				}
				if p.Object == "" {
					if _, exists := objects[p.Address]; exists {
						rt.Skip() // the API server refuses
					}
					for _, h := range objects {
						if h.Pod.Name == nameOf(pod) {
							rt.Fatalf("%s gets %s beside %s", pod, p.Address, h.Address)
						}
					}
					created++
					objects[p.Address] = Reservation{Address: p.Address, Object: fmt.Sprint(created), Domain: p.Domain,
						Pod: named(nameOf(pod))}
					l.Observe(objects[p.Address])
				}
				delete(promised, pod)
				l.Drop(pod)
			},
			"give up": func(rt *rapid.T) {
				pod := pods.Draw(rt, "pod")
				_, ok := promised[pod]
				if l.Drop(pod) != ok || l.Drop(pod) {
					rt.Fatalf("the promise to %s ended never or twice", pod)
				}
				delete(promised, pod)
			},
			"somebody else writes": func(rt *rapid.T) {
				a := netip.MustParseAddr(rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.1.1",
					"192.0.2.1"}).Draw(rt, "address"))
				if _, exists := objects[a]; exists {
					rt.Skip()
				}
				created++
				objects[a] = Reservation{Address: a, Object: fmt.Sprint(created), Pod: named("stranger")}
				l.Observe(objects[a])
				for pod, p := range promised {
					if p.Address == a {
						delete(promised, pod)
						l.Drop(pod)
					}
				}
			},
			"release": func(rt *rapid.T) {
				h := known(rt)
				for _, p := range promised {
					if p.Address == h.Address {
						rt.Skip() // the pod exists
					}
				}
				delete(objects, h.Address)
				if !l.Forget(h.Address, h.Object) || l.Forget(h.Address, h.Object) {
					rt.Fatalf("%s was freed never or twice", h.Address)
				}
			},
			"an old event": func(rt *rapid.T) {
				h := known(rt)
				if l.Forget(h.Address, "older") {
					rt.Fatalf("an event of an older object frees %s", h.Address)
				}
				if l.Observe(h) {
					rt.Fatalf("%s is news twice", h.Address)
				}
			},
			"": func(rt *rapid.T) {
				fresh := ledgerOf(pools...)
				for _, h := range objects {
					fresh.Observe(h)
				}
				for _, p := range promised {
					if _, exists := objects[p.Address]; !exists {
						fresh.Observe(Reservation{Address: p.Address, Object: "promise"})
					}
				}
				if diff := cmp.Diff(fresh.Usages(), l.Usages()); diff != "" {
					rt.Fatalf("built of the objects (-) and kept over time (+):\n%s", diff)
				}
			},
		})
	})
}

func TestAHugePoolIsNotEnumerated(t *testing.T) {
	t.Parallel()
	l := ledgerOf(pool(t, "six", in("", "2001:db8::/32")))
	for i := range 1000 {
		p, reason := l.Reserve(ask(fmt.Sprint(i), "six"), nil)
		if want := netip.MustParsePrefix("2001:db8::/32"); reason != "" || !want.Contains(p.Address) ||
			!strings.HasPrefix(p.Address.String(), "2001:db8::") {
			t.Fatalf("pod %d: %s %s", i, p.Address, reason)
		}
	}
	if u := l.Usages()[Place{Pool: "six"}]; u.Used != 1000 || u.Free != most-1000 {
		t.Errorf("used %d, free %d", u.Used, u.Free)
	}
}
