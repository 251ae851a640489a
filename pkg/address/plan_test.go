package address

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// What a plan counts for other pods is what Reserve then takes: of several subnets on one node the first that has
// addresses.
func TestAPlanCountsWhatReserveTakes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ranges := []string{"10.0.0.1", "10.0.1.1-10.0.1.2", "10.0.2.1", "10.0.3.1-10.0.3.3"}
		domains := []Domain{{}, {"rack", "a"}, {"rack", "b"}, {"zone", "z"}}
		pool := &Pool{Name: "p"}
		for _, r := range ranges {
			set, err := NewSet([]string{r}, nil)
			if err != nil {
				rt.Fatal(err)
			}
			pool.Subnets = append(pool.Subnets, Subnet{rapid.SampledFrom(domains).Draw(rt, "domain"), set})
		}
		var l Ledger
		l.SetPools([]*Pool{pool})
		nodes := []map[string]string{{"rack": "a", "zone": "z"}, {"rack": "b", "zone": "z"}, {"rack": "b"}, {}}
		plan, reason := l.Plan(ask("last", "p"))
		if reason != "" {
			rt.Fatal(reason)
		}
		for i := range 6 {
			pod, at := fmt.Sprint("pod-", i), rapid.SampledFrom(nodes).Draw(rt, "node")
			refusal, _ := plan.Refuses(at)
			_, full := l.Reserve(ask(pod, "p"), at)
			if refusal != full {
				rt.Fatalf("pod %d on %v: the plan says %q, Reserve %q; subnets %v", i, at, refusal, full, pool.Subnets)
			}
			if full == "" {
				plan.Add(&l, ask(pod, "p"), at)
			}
		}
		free := uint64(0)
		for _, u := range l.Usages() {
			free += u.Free
		}
		if fresh, _ := l.Plan(ask("last", "p")); fresh.Hopeless() != (free == 0) {
			rt.Fatalf("%d addresses are free; the plan is hopeless: %t", free, fresh.Hopeless())
		}
	})
}

func TestAPodThatIsCountedTwiceIsMoved(t *testing.T) {
	t.Parallel()
	var l Ledger
	l.SetPools([]*Pool{{Name: "racks", Subnets: []Subnet{subnet(t, "a", "10.0.0.1"), subnet(t, "b", "10.0.1.1")}}})
	plan, _ := l.Plan(ask("p", "racks"))
	plan.Add(&l, ask("q", "racks"), rackA)
	plan.Add(&l, ask("q", "racks"), rackB)
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

// News of one reservation come from the informer and from the answers to what was written, and overtake each other.
func TestNewsThatAreLateChangeNothing(t *testing.T) {
	t.Parallel()
	a := netip.MustParseAddr("10.0.0.1")
	old := Holding{Address: a, Object: "old", Version: 5, Identity: Identity{Pod: "p"}}
	fresh := Holding{Address: a, Object: "new", Version: 9, Domain: Domain{"rack", "b"}, Identity: Identity{Pod: "q"}}
	moved := fresh
	moved.Version, moved.Domain = 12, Domain{"rack", "a"}
	renewed := moved
	renewed.Version, renewed.Pod = 13, "uid"
	var l Ledger
	for i, step := range []struct {
		tell    Holding
		changes bool
		want    Holding
	}{{old, true, old}, {old, false, old}, {fresh, true, fresh}, {old, false, fresh}, {moved, true, moved},
		{fresh, false, moved}, {renewed, false, renewed}} {
		if changes := l.Observe(step.tell); changes != step.changes {
			t.Errorf("step %d changes something: %t, want %t", i, changes, step.changes)
		}
		got, _ := l.Held(a)
		if diff := cmp.Diff(step.want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
	if l.Forget(a, "old") || l.Concerns([]Identity{{Pod: "p"}}) || !l.Concerns([]Identity{{Pod: "q"}}) {
		t.Error("the end of the old reservation ends the new one")
	}
}

// Two schedulers may have reserved an address each for one pod. A pod that is tried again gets the one that it was
// given.
func TestAPodThatIsTriedAgainKeepsItsAddress(t *testing.T) {
	t.Parallel()
	var l Ledger
	who := ask("p", "").Identities[0]
	for i, pod := range []string{"earlier", "p", "other"} {
		l.Observe(Holding{Address: netip.MustParseAddr(fmt.Sprint("10.0.0.", i+1)), Object: fmt.Sprint(i), Identity: who,
			Pod: pod})
	}
	for pod, want := range map[string]string{"p": "10.0.0.2", "new": "10.0.0.1"} {
		again := ask(pod, "")
		again.Identities = []Identity{who}
		p, reason := l.Reserve(again, nil)
		if p.Address.String() != want {
			t.Errorf("pod %s is promised %s (%s), want %s", pod, p.Address, reason, want)
		}
		l.Drop(pod)
	}
}

// One of the reservations may have been made for a pod that was deleted before it could run.
func TestAPodGetsTheAddressThatTheLastOneRanWith(t *testing.T) {
	t.Parallel()
	who := ask("p", "").Identities
	tests := map[string]struct {
		prepare func(l *Ledger)
		want    string
	}{
		"the lowest if none is known to have run": {prepare: func(*Ledger) {}, want: "10.0.0.1"},
		"that of the pod that ran":                {prepare: func(l *Ledger) { l.Ran(who, "b") }, want: "10.0.0.2"},
		"that of the last of two": {prepare: func(l *Ledger) { l.Ran(who, "b"); l.Ran(who, "c") },
			want: "10.0.0.3"},
		"the lowest if the pod that ran had none of them": {prepare: func(l *Ledger) { l.Ran(who, "stranger") },
			want: "10.0.0.1"},
		"the lowest if the address is gone": {prepare: func(l *Ledger) {
			l.Ran(who,
				"b")
			l.Forget(netip.MustParseAddr("10.0.0.2"), "b")
		}, want: "10.0.0.1"},
		"the lowest if another reservation has the place of that": {prepare: func(l *Ledger) {
			l.Ran(who, "b")
			a := netip.MustParseAddr("10.0.0.2")
			l.Observe(Holding{Address: a, Object: "other", Identity: Identity{Pod: "stranger"}})
			l.Observe(Holding{Address: a, Object: "again", Identity: who[0], Pod: "old"})
		}, want: "10.0.0.1"},
		"that of the pod that ran if another one is gone": {prepare: func(l *Ledger) {
			l.Ran(who,
				"b")
			l.Forget(netip.MustParseAddr("10.0.0.3"), "c")
		}, want: "10.0.0.2"},
		"that of the pod that ran if its version is another": {prepare: func(l *Ledger) {
			l.Ran(who, "b")
			l.Observe(Holding{Address: netip.MustParseAddr("10.0.0.2"), Object: "b", Version: 7, Identity: who[0], Pod: "b"})
		}, want: "10.0.0.2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l Ledger
			for i, pod := range []string{"a", "b", "c"} {
				l.Observe(Holding{Address: netip.MustParseAddr(fmt.Sprint("10.0.0.", i+1)), Object: pod, Identity: who[0],
					Pod: pod})
			}
			test.prepare(&l)
			if p, reason := l.Reserve(&Ask{Pod: "new", Identities: who}, nil); p.Address.String() != test.want {
				t.Errorf("promised %s (%s), want %s", p.Address, reason, test.want)
			}
		})
	}
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	pool := func(name string, ranges ...string) *Pool {
		return &Pool{Name: name, Subnets: []Subnet{subnet(t, "", ranges...)}}
	}
	tests := map[string]struct {
		pools []*Pool
		want  map[string][]string
	}{
		"none": {want: map[string][]string{}},
		"pools that touch": {pools: []*Pool{pool("a", "10.0.0.1-10.0.0.4"), pool("b", "10.0.0.5")},
			want: map[string][]string{}},
		"pools that share one address": {pools: []*Pool{pool("b", "10.0.0.4-10.0.0.9"),
			pool("a", "10.0.0.1-10.0.0.4")}, want: map[string][]string{"a": {"b"}, "b": {"a"}}},
		"one in the other, and one beyond": {pools: []*Pool{pool("all", "10.0.0.0/8"),
			pool("x", "10.1.0.0/16"), pool("y", "10.2.0.0/16"), pool("six", "2001:db8::/64")},
			want: map[string][]string{"all": {"x", "y"}, "x": {"all"}, "y": {"all"}}},
		"twice in common": {pools: []*Pool{pool("a", "10.0.0.1", "10.0.0.9"), pool("b", "10.0.0.1-10.0.0.9")},
			want: map[string][]string{"a": {"b"}, "b": {"a"}}},
		"the last of one family and the first of the other": {pools: []*Pool{pool("a", "255.255.255.255"), pool("b", "::")},
			want: map[string][]string{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, Overlaps(test.pools)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
