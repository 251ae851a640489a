package ipreservation

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	restclient "k8s.io/client-go/rest"

	"berth.dev/berth/pkg/apis/config"
	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"

	"berth.dev/berth/pkg/simulation/plugintest"
)

func prioritized(p *v1.Pod, priority int32, nominated string) *v1.Pod {
	p.Spec.Priority = &priority
	p.Status.NominatedNodeName = nominated
	return p
}

// An address that is kept for a nominated pod is kept on all nodes: it is free in the cluster once, not once a node.
func TestAnAddressIsKeptForANominatedPod(t *testing.T) {
	t.Parallel()
	const one = `IPPool any {subnets: [{ranges: [10.0.0.1]}]}`
	kept := map[string]string{"a": "pool any has no free address", "b": "pool any has no free address"}
	nominee := func() *v1.Pod { return prioritized(asking("nominee", "any"), 10, "a") }
	tests := map[string]struct {
		nominee *v1.Pod
		pod     *v1.Pod
		objects []string
		want    map[string]string
	}{
		"against a pod of lower priority":                                        {nominee: nominee(), pod: prioritized(asking("p", "any"), 0, ""), want: kept},
		"against a pod of the same priority":                                     {nominee: nominee(), pod: prioritized(asking("p", "any"), 10, ""), want: kept},
		"not against a pod of higher priority":                                   {nominee: nominee(), pod: prioritized(asking("p", "any"), 20, ""), want: map[string]string{}},
		"not against itself":                                                     {nominee: nominee(), pod: nominee(), want: map[string]string{}},
		"against a nominated pod of the same priority that comes later in order": {nominee: nominee(), pod: prioritized(asking("p", "any"), 10, "b"), want: kept},
		"not against one that comes earlier":                                     {nominee: nominee(), pod: prioritized(asking("early", "any"), 10, "b"), want: map[string]string{}},
		"not if it is nominated to a node that is gone":                          {nominee: prioritized(asking("nominee", "any"), 10, "gone"), pod: asking("p", "any"), want: map[string]string{}},
		"not if it asks for another pool":                                        {nominee: prioritized(asking("nominee", "other"), 10, "a"), pod: asking("p", "any"), want: map[string]string{}},
		"not twice if it has an address already": {nominee: nominee(), pod: asking("p", "more"), want: map[string]string{},
			objects: []string{`IPPool more {subnets: [{ranges: [10.0.1.1-10.0.1.2]}]}`, `IPReservation ip-10-0-1-1 {address: 10.0.1.1, pod: {namespace: default, name: nominee}}`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, nil, &config.IPReservationArgs{}, append(test.objects, one)...)
			test.nominee.Spec.SchedulerName = profile
			c.create(t, test.nominee)
			if test.nominee.Annotations["berth.dev/ip-pool"] != "" {
				plugintest.Await(t, "the nomination", func() bool { _, ok := c.plugin.book.nominated.Load(test.nominee.UID); return ok })
			}
			got, _ := c.filter(t, test.pod)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
		})
	}
}

// The address is free again when the nominated pod is gone, and those that were refused it are told.
func TestANominatedPodThatIsGoneKeepsNoAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, nominatedPodGoes)
}

func nominatedPodGoes(t *testing.T) {
	c := newCluster(t, nil, &config.IPReservationArgs{}, `IPPool any {subnets: [{ranges: [10.0.0.1]}]}`, `IPPool full {subnets: [{ranges: [10.0.1.1]}]}`,
		`IPReservation ip-10-0-1-1 {address: 10.0.1.1, pod: {namespace: default, name: other}}`)
	nominee := prioritized(asking("nominee", "any"), 10, "a")
	nominee.Spec.SchedulerName = profile
	c.create(t, nominee)
	c.create(t, asking("p", "any"))
	c.create(t, asking("hopeless", "full"))
	c.create(t, asking("stranger", ""))
	c.tried()
	c.api.Delete(v1.SchemeGroupVersion.WithResource("pods"), types.NamespacedName{Namespace: "default", Name: "nominee"})
	if diff := cmp.Diff([]string{"p"}, c.tried()); diff != "" {
		t.Errorf("tried again (-want +got):\n%s", diff)
	}
	if reasons, _ := c.filter(t, asking("p", "any")); len(reasons) > 0 {
		t.Errorf("refused: %v", reasons)
	}
}

// The reservation is deleted before the informer shows it: nothing tells of that, so the plugin asks.
func TestAReservationThatWasNeverSeenIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, neverSeen)
}

func neverSeen(t *testing.T) {
	c := newCluster(t, nil, &config.IPReservationArgs{}, `IPPool any {subnets: [{ranges: [10.0.0.1-10.0.0.2]}]}`)
	c.ready(t)
	made := func(name, text, uid string) *networkv1alpha1.IPReservation {
		r := &networkv1alpha1.IPReservation{Spec: networkv1alpha1.IPReservationSpec{Address: text, Pod: networkv1alpha1.PodIdentity{Namespace: "default", Name: "old"}}}
		r.Name, r.UID, r.ResourceVersion = name, types.UID(uid), "7"
		return r
	}
	// The first is gone, and in the place of the second is another one.
	c.apply(t, `IPReservation ip-10-0-0-2 {address: 10.0.0.2, pod: {namespace: default, name: new}}`)
	synctest.Wait() // the informer has told of it
	c.plugin.book.noteWritten(made("ip-10-0-0-1", "10.0.0.1", "gone"))
	c.plugin.book.noteWritten(made("ip-10-0-0-2", "10.0.0.2", "replaced"))
	if reasons, _ := c.filter(t, asking("p", "any")); len(reasons) != 2 {
		t.Errorf("what the API server said it has written is free: %v", reasons)
	}
	for range 2 {
		c.plugin.book.askForWritten(t.Context())
	}
	if left := c.plugin.book.askForWritten(t.Context()); left != 0 {
		t.Errorf("%d reservations are still looked after", left)
	}
	p, reason := c.plugin.book.ledger.Reserve(mustAsk(asking("p", "any")), nil)
	if p.Address != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("the pod is promised %s (%s), want the address that nobody has", p.Address, reason)
	}
	if who, ok := c.plugin.book.ledger.Held(netip.MustParseAddr("10.0.0.2")); !ok || who.Identity.Pod != "new" {
		t.Errorf("the other address is that of %v", who)
	}
}

// What is written and is still there is looked after until the informer has shown it.
func TestAReservationThatIsSlowToBeSeenIsKept(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil, &config.IPReservationArgs{}, `IPPool any {subnets: [{ranges: [10.0.0.1]}]}`)
	p := c.create(t, asking("p", "any"))
	c.ready(t, "p")
	if reason := c.bind(t, c.reserve(t, p), p); reason != "" {
		t.Fatal(reason)
	}
	plugintest.Await(t, "the informer", func() bool { return c.plugin.book.askForWritten(t.Context()) == 0 })
	if reasons, _ := c.filter(t, asking("q", "any")); len(reasons) != 2 {
		t.Errorf("the address is free: %v", reasons)
	}
}

// A pod that is deleted between Reserve and PreBind has never had its address, which is free at once, whatever the policy.
func TestAPodThatIsDeletedBeforeItIsBoundGivesItsAddressBack(t *testing.T) {
	t.Parallel()
	for _, policy := range []networkv1alpha1.ReleasePolicy{networkv1alpha1.OnPodDeletion, networkv1alpha1.OnStatefulSetDeletion, networkv1alpha1.Retain} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, nil, &config.IPReservationArgs{}, `IPPool any {releasePolicy: `+string(policy)+`, subnets: [{ranges: [10.0.0.1]}]}`)
				p := c.create(t, asking("p", "any"))
				state := c.reserve(t, p)
				c.api.Delete(v1.SchemeGroupVersion.WithResource("pods"), types.NamespacedName{Namespace: "default", Name: "p"})
				synctest.Wait()
				if reason := c.bind(t, state, p); !strings.Contains(reason, "reserving address 10.0.0.1 for pod default/p: the pod was deleted meanwhile") {
					t.Fatalf("PreBind says %q", reason)
				}
				if got := c.reservation("ip-10-0-0-1"); got != nil {
					t.Errorf("the reservation is %v", got)
				}
				if reasons, _ := c.filter(t, asking("q", "any")); len(reasons) > 0 {
					t.Errorf("the address is not free: %v", reasons)
				}
			})
		})
	}
}

// The pod ends while the promise still holds: the first look at its reservation does not release it, a later one does.
func TestAReservationIsReleasedAfterThePromise(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, nil, &config.IPReservationArgs{}, `IPReservation ip-10-0-0-1 {address: 10.0.0.1, podUID: before, releasePolicy: OnPodDeletion, pod: {namespace: default, name: p}}`)
		p := asking("p", "")
		state := c.reserve(t, p)
		rest()
		if c.reservation("ip-10-0-0-1") == nil {
			t.Fatal("a promised reservation is released")
		}
		c.framework.RunReservePluginsUnreserve(t.Context(), state, p, onlyNode)
		rest()
		if got := c.reservation("ip-10-0-0-1"); got != nil {
			t.Errorf("the reservation is %v", got)
		}
	})
}

// A pod that waited only because of its reservation needs no address when that is deleted, and has to be tried.
func TestWhoIsTriedAgain(t *testing.T) {
	t.Parallel()
	const reserved = `IPReservation ip-10-0-9-1 {address: 10.0.9.1, domain: {key: rack, value: r9}, pod: {namespace: default, name: owner}}`
	tests := map[string]struct {
		change func(t *testing.T, c *cluster)
		want   []string
	}{
		"a reservation is deleted":        {func(t *testing.T, c *cluster) { c.remove(t, reservationKind, "ip-10-0-9-1") }, []string{"open", "owner"}},
		"a reservation gets a new domain": {func(t *testing.T, c *cluster) { c.apply(t, strings.Replace(reserved, "r9", "r1", 1)) }, []string{"owner"}},
		"a reservation is made for a pod": {func(t *testing.T, c *cluster) {
			c.apply(t, `IPReservation ip-10-0-9-2 {address: 10.0.9.2, pod: {namespace: default, name: plain}}`)
		}, []string{"plain"}},
		"a pool gets addresses": {func(t *testing.T, c *cluster) { c.apply(t, `IPPool full {subnets: [{ranges: [10.0.1.1-10.0.1.2]}]}`) }, []string{"full", "missing", "open", "owner"}},
		"a pool is created": {func(t *testing.T, c *cluster) {
			c.apply(t, `IPPool missing {namespaces: [x], subnets: [{ranges: [10.0.3.1]}]}`)
		}, []string{"full", "missing", "open", "owner"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, nil, &config.IPReservationArgs{}, reserved, `IPPool open {subnets: [{ranges: [10.0.2.1]}]}`,
					`IPPool full {subnets: [{ranges: [10.0.1.1]}]}`, `IPReservation ip-10-0-1-1 {address: 10.0.1.1, pod: {namespace: default, name: other}}`)
				for pod, pool := range map[string]string{"owner": "", "plain": "", "open": "open", "full": "full", "missing": "missing"} {
					c.create(t, asking(pod, pool))
				}
				c.ready(t)
				c.tried()
				test.change(t, c)
				if diff := cmp.Diff(test.want, c.tried()); diff != "" {
					t.Errorf("tried again (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// What the plugin writes itself, or what changes nothing, wakes nobody: each pod that is bound would wake all that wait.
func TestNobodyIsTriedAgainForNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, nil, &config.IPReservationArgs{}, `IPPool any {subnets: [{ranges: [10.0.0.1-10.0.0.9]}]}`)
		c.create(t, asking("waits", "any"))
		p := c.create(t, asking("p", "any"))
		c.ready(t)
		c.tried()
		if reason := c.bind(t, c.reserve(t, p), p); reason != "" {
			t.Fatal(reason)
		}
		if names := c.tried(); slices.Contains(names, "waits") {
			t.Errorf("tried again because another pod is bound: %v", names)
		}
		c.apply(t, `IPReservation ip-10-0-0-1 {address: 10.0.0.1, pool: any, podUID: another, releasePolicy: Retain, pod: {namespace: default, name: p}}`)
		c.apply(t, `IPPool any {subnets: [{ranges: [10.0.0.1-10.0.0.9]}]}`)
		if names := c.tried(); len(names) > 0 {
			t.Errorf("tried again: %v", names)
		}
	})
}

// Everything that there was of addresses goes while the scheduler runs, and comes back.
func TestCustomResourcesGoAndComeBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil, &config.IPReservationArgs{}, onePerRack)
	p := c.create(t, asking("p", "racks"))
	c.ready(t, "p")
	state := c.reserve(t, p)
	c.remove(t, poolKind, "racks")
	plugintest.Await(t, "the pools", func() bool { return len(c.plugin.book.ledger.Usages()) == 0 })
	if reason := c.bind(t, state, p); reason != "" {
		t.Errorf("an address that is promised is not given: %s", reason)
	}
	if reasons, _ := c.filter(t, asking("q", "racks")); reasons[""] != "there is no IPPool racks" {
		t.Errorf("without pools: %v", reasons)
	}
	plugintest.Await(t, "the informer", func() bool { return c.plugin.book.askForWritten(t.Context()) == 0 })
	c.remove(t, reservationKind, "ip-10-0-1-1")
	plugintest.Await(t, "the reservations", func() bool { return c.plugin.book.ledger.Empty() })
	c.apply(t, onePerRack)
	plugintest.Await(t, "the pools", func() bool { return len(c.plugin.book.ledger.Usages()) == 2 })
	if reasons, _ := c.filter(t, asking("q", "racks")); len(reasons) > 0 {
		t.Errorf("with pools again: %v", reasons)
	}
}

// A pool that shrinks takes no address away, and gives none out that it does not have any more.
func TestAPoolShrinks(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil, &config.IPReservationArgs{}, `IPPool any {subnets: [{ranges: [10.0.0.1-10.0.0.3]}]}`)
	p, q := c.create(t, asking("p", "any")), c.create(t, asking("q", "any"))
	c.ready(t, "p", "q")
	if reason := c.bind(t, c.reserve(t, p), p); reason != "" {
		t.Fatal(reason)
	}
	promised := c.reserve(t, q)
	c.apply(t, `IPPool any {subnets: [{domain: {key: rack, value: r1}, ranges: [10.0.0.3]}]}`)
	plugintest.Await(t, "the pool", func() bool { return c.plugin.book.ledger.Usages()[0].Size() == 1 })
	if reason := c.bind(t, promised, q); reason != "" {
		t.Errorf("an address that is promised is not given: %s", reason)
	}
	for name, want := range map[string]string{"p": "10.0.0.1", "q": "10.0.0.2"} {
		if got := c.annotations(name)["berth.dev/ip-address"]; got != want {
			t.Errorf("pod %s has address %s, want %s", name, got, want)
		}
		back := asking(name, "any")
		back.UID += "-again"
		if reasons, _ := c.filter(t, back); len(reasons) > 0 {
			t.Errorf("pod %s comes back: %v", name, reasons)
		}
	}
	c.reserve(t, asking("r", "any"))
	want := map[string]string{"a": "pool any has no free address in domain rack=r1", "b": "node(s) outside the domains of pool any"}
	got, _ := c.filter(t, asking("s", "any"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

// A scheduler that led before finds a reservation unused and no pod that needs it. Before it deletes the reservation, the scheduler
// that leads by now gives the address to a pod.
func TestASchedulerThatLedBeforeReleasesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, given := asking("p", ""), func() {}
		old := newClusterWith(t, nil, &config.IPReservationArgs{}, func(b *book) {
			client, _ := b.handle.ClientSet().CoreV1().RESTClient().(*restclient.RESTClient)
			doAfter(client, http.MethodGet, "pods/p", func() { given() })
		}, `IPReservation ip-10-0-0-1 {address: 10.0.0.1, podUID: before, releasePolicy: OnPodDeletion, pod: {namespace: default, name: p}}`)
		fresh := newCluster(t, old.api, &config.IPReservationArgs{})
		synctest.Wait() // the loops of both have found that neither leads, and pause
		stale := old.plugin.book.reservations.GetStore().List()[0].(*networkv1alpha1.IPReservation)
		old.plugin.book.begin()
		state, bound := fresh.reserve(t, p), false
		given = func() {
			fresh.create(t, p)
			if reason := fresh.bind(t, state, p); reason != "" {
				t.Fatal(reason)
			}
			bound = true
		}
		if _, err := old.plugin.book.releaseOne(t.Context(), stale); err != nil {
			t.Fatal(err)
		}
		if got := fresh.reservation("ip-10-0-0-1"); !bound || got == nil || got["podUID"] != "p" {
			t.Errorf("the reservation is %v, the pod has its address: %t", got, bound)
		}
	})
}

// rest lets the loops of the plugin do all that they have to do.
func rest() {
	time.Sleep(time.Minute) //nolint:forbidigo // virtual time
	synctest.Wait()
}

// tried returns the names of the pods that were woken since it was called last.
func (c *cluster) tried() []string {
	rest()
	names := map[string]bool{}
	for len(c.framework.Woken) > 0 {
		names[<-c.framework.Woken] = true
	}
	return slices.Sorted(maps.Keys(names))
}
