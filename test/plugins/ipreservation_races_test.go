package plugins_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
)

// A pod that is deleted between Reserve and PreBind has never had its address, which is free at once, whatever the
// policy.
func TestAPodThatIsDeletedBeforeItIsBoundGivesItsAddressBack(t *testing.T) {
	t.Parallel()
	for _, policy := range []networkv1alpha1.ReleasePolicy{networkv1alpha1.OnPodDeletion,
		networkv1alpha1.OnStatefulSetDeletion, networkv1alpha1.Retain} {
		t.Run(string(policy), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := giveOut(t, `IPPool any {releasePolicy: `+string(policy)+`, subnets: [{ranges: [10.0.0.1]}]}`)
				p := c.add(t, asking("p", "any"))
				state := c.reserve(t, p)
				c.DeletePod(t, "p")
				synctest.Wait()
				if reason := c.preBind(t, state, p); !strings.Contains(reason,
					"telling pod default/p its address 10.0.0.1: pods") {
					t.Fatalf("PreBind says %q", reason)
				}
				if got := c.reservation("ip-10-0-0-1"); got != nil {
					t.Errorf("the reservation is %v", got)
				}
				synctest.Wait()
				if reasons := c.filter(t, asking("q", "any")); len(reasons) > 0 {
					t.Errorf("the address is not free: %v", reasons)
				}
			})
		})
	}
}

// A pod that waited only because of its reservation needs no address when that is deleted, and has to be tried.
func TestWhoIsTriedAgainForAnAddress(t *testing.T) {
	t.Parallel()
	const reserved = `IPReservation ip-10-0-9-1 {address: 10.0.9.1, domain: {key: rack, value: r9}, pod: {namespace: default, name: owner}}`
	tests := map[string]struct {
		change func(t *testing.T, c *addressed)
		want   []string
	}{
		"a reservation is deleted": {func(t *testing.T, c *addressed) {
			c.Delete(t, reservationsResource, "",
				"ip-10-0-9-1")
		}, []string{"missing", "open", "owner"}},
		"a reservation gets a new domain": {func(t *testing.T,
			c *addressed) {
			c.apply(t, strings.Replace(reserved, "r9", "r1", 1))
		}, []string{"owner"}},
		"a reservation is made for a pod": {func(t *testing.T, c *addressed) {
			c.apply(t, `IPReservation ip-10-0-9-2 {address: 10.0.9.2, pod: {namespace: default, name: plain}}`)
		}, []string{"plain"}},
		"a pool gets addresses": {func(t *testing.T, c *addressed) { c.apply(t, `IPPool full {subnets: [{ranges: [10.0.1.1-10.0.1.2]}]}`) }, []string{"full", "missing", "open"}},
		"a pool is created": {func(t *testing.T, c *addressed) {
			c.apply(t, `IPPool missing {namespaces: [x], subnets: [{ranges: [10.0.3.1]}]}`)
		}, []string{"missing", "open"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := giveOut(t, reserved, `IPPool open {subnets: [{ranges: [10.0.2.1]}]}`,
					`IPPool full {subnets: [{ranges: [10.0.1.1]}]}`, `IPReservation ip-10-0-1-1 {address: 10.0.1.1, pod: {namespace: default, name: other}}`)
				for pod, pool := range map[string]string{"owner": "", "plain": "", "open": "open", "full": "full",
					"missing": "missing"} {
					c.add(t, asking(pod, pool))
				}
				c.tried()
				test.change(t, c)
				if diff := cmp.Diff(test.want, c.tried()); diff != "" {
					t.Errorf("tried again (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// What the plugin writes itself, or what changes nothing, wakes no pod: each pod that is bound would wake all that
// wait.
func TestNobodyIsTriedAgainForNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := giveOut(t, `IPPool any {subnets: [{ranges: [10.0.0.1-10.0.0.9]}]}`)
		c.add(t, asking("waits", "any"))
		p := c.add(t, asking("p", "any"))
		c.tried()
		c.mustBind(t, p)
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

// A pool that shrinks takes no address away, and gives none out that it does not have any more.
func TestAPoolShrinks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := giveOut(t, `IPPool any {subnets: [{ranges: [10.0.0.1-10.0.0.3]}]}`)
		p, q := c.add(t, asking("p", "any")), c.add(t, asking("q", "any"))
		c.mustBind(t, p)
		promised := c.reserve(t, q)
		c.apply(t, `IPPool any {subnets: [{domain: {key: rack, value: r1}, ranges: [10.0.0.3]}]}`)
		pass(second)
		if reason := c.preBind(t, promised, q); reason != "" {
			t.Errorf("an address that is promised is not given: %s", reason)
		}
		for name, want := range map[string]string{"p": "10.0.0.1", "q": "10.0.0.2"} {
			if got := c.annotation(name, "berth.dev/ip-address"); got != want {
				t.Errorf("pod %s has address %s, want %s", name, got, want)
			}
			back := asking(name, "any")
			back.UID += "-again"
			if reasons := c.filter(t, back); len(reasons) > 0 {
				t.Errorf("pod %s comes back: %v", name, reasons)
			}
		}
		c.reserve(t, asking("r", "any"))
		want := map[string]string{"a": "pool any has no free address in domain rack=r1",
			"b": "node(s) outside the domains of pool any"}
		got := c.filter(t, asking("s", "any"))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("refused (-want +got):\n%s", diff)
		}
	})
}

// A scheduler that led before finds a reservation unused and no pod that needs it. Before it deletes the reservation,
// the scheduler that leads by now gives the address to a pod.
func TestASchedulerThatLedBeforeReleasesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leads := &candidate{}
		p, given := asking("p", ""), func() {}
		setup := addressSetup(t, `IPReservation ip-10-0-0-1 {address: 10.0.0.1, podUID: before, releasePolicy: OnPodDeletion, pod: {namespace: default, name: p}}`)
		setup.Leader = leads
		setup.Through = doAfter(http.MethodGet, "pods/p", func() { given() })
		old := startAddressed(t, setup)
		synctest.Wait() // its loop has found that it does not lead, and pauses
		bound := false
		given = func() {
			// The other scheduler knows the pod from its start, or it could release the address itself.
			old.Create(t, p)
			fresh := beside(t, old.API)
			if reason := fresh.preBind(t, fresh.reserve(t, p), p); reason != "" {
				t.Errorf("giving the address to the pod: %s", reason)
			}
			bound = true
		}
		leads.Store(true)
		pass(minute)
		if got := old.reservation("ip-10-0-0-1"); !bound || got == nil || got["podUID"] != "p" {
			t.Errorf("the reservation is %v, the pod has its address: %t", got, bound)
		}
	})
}
