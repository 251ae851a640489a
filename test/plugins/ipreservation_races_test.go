package plugins_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
