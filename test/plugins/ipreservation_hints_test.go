package plugins_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// A pod waits where pool racks has an address in rack r1 and one in rack r2, which is reserved.
func TestWhatWakesAPodThatIPReservationRefused(t *testing.T) {
	t.Parallel()
	const afterNode, afterOwn = 0, 1
	const reserved = `IPReservation ip-10-0-2-1 {address: 10.0.2.1, domain: {key: rack, value: r2}, pod: {namespace: default, name: owner}}`
	labeled := func(n *v1.Node, key, value string) *v1.Node {
		n = n.DeepCopy()
		n.Labels[key] = value
		return n
	}
	cordoned := racked("n", "r1")
	cordoned.Spec.Unschedulable = true
	tests := map[string]struct {
		pod           *v1.Pod
		before, after *v1.Node
		// late is done after the plugin has begun.
		late func(t *testing.T, c *addressed)
		want fwk.QueueingHint
	}{
		"a node where an address is free comes": {pod: asking("p", "racks"), after: racked("n", "r1"),
			want: fwk.Queue},
		"a node where no address is free comes": {pod: asking("p", "racks"), after: racked("n", "r2"),
			want: fwk.QueueSkip},
		"a node outside the pool's domains comes": {pod: asking("p", "racks"), after: racked("n", "r9"),
			want: fwk.QueueSkip},
		"a node moves into the pool's domains": {pod: asking("p", "racks"), before: racked("n", "r9"),
			after: racked("n", "r1"), want: fwk.Queue},
		"a node moves to where an address is free": {pod: asking("p", "racks"), before: racked("n", "r2"),
			after: racked("n", "r1"), want: fwk.Queue},
		"a node moves away from where an address is free": {pod: asking("p", "racks"), before: racked("n", "r1"),
			after: racked("n", "r9"), want: fwk.QueueSkip},
		"a node where an address is free gets a label": {pod: asking("p", "racks"), before: racked("n", "r1"),
			after: labeled(racked("n", "r1"), "x", "y"), want: fwk.QueueSkip},
		"a node keeps its labels": {pod: asking("p", "racks"), before: cordoned,
			after: racked("n", "r1"), want: fwk.QueueSkip},
		"a node comes for a pod of a pool that is missing": {pod: asking("p", "missing"), after: racked("n", "r1"),
			want: fwk.QueueSkip},
		"a node comes for a pod whose annotation cannot be read": {pod: asking("p", "A B"), after: racked("n", "r1"),
			want: fwk.QueueSkip},
		"a node comes where the pod's reservation is routable": {pod: asking("owner", ""), after: racked("n", "r2"),
			want: fwk.Queue},
		"a node comes where the pod's reservation is not": {pod: asking("owner", "racks"), after: racked("n", "r1"),
			want: fwk.QueueSkip},
		"a node moves to where the pod's reservation is routable": {pod: asking("owner", ""), before: racked("n", "r1"),
			after: racked("n", "r2"), want: fwk.Queue},
		"a node comes for a pod whose reservation is gone": {pod: asking("owner", ""), after: racked("n", "r1"),
			want: fwk.Queue,
			late: func(t *testing.T, c *addressed) { c.Delete(t, reservationsResource, "", "ip-10-0-2-1") }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := giveOut(t, onePerRack, reserved)
				if test.late != nil {
					test.late(t, c)
					pass(second)
				}
				var before any
				if test.before != nil {
					before = test.before
				}
				if got := hint(t, c.plugin, afterNode, test.pod, before, test.after); got != test.want {
					t.Errorf("hint %v, want %v", got, test.want)
				}
			})
		})
	}
	for name, test := range map[string]struct {
		before, after string
		want          fwk.QueueingHint
	}{
		"another pool":   {"racks", "other", fwk.Queue},
		"no pool":        {"racks", "", fwk.Queue},
		"the same pool":  {"racks", "racks", fwk.QueueSkip},
		"a first pool":   {"", "racks", fwk.Queue},
		"nothing of all": {"", "", fwk.QueueSkip},
	} {
		t.Run("the pod asks for "+name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				before, after := asking("p", test.before), asking("p", test.after)
				after.Labels = map[string]string{"another": "label"}
				if got := hint(t, giveOut(t).plugin, afterOwn, before, before, after); got != test.want {
					t.Errorf("hint %v, want %v", got, test.want)
				}
			})
		})
	}
}

// The framework gives a plugin no event of an API that may be absent. After one that it cannot read, the pod is tried.
func TestNoEventIsOfACustomResource(t *testing.T) {
	bubble(t, func(t *testing.T) {
		events, err := giveOut(t).plugin.EventsToRegister(t.Context())
		if err != nil || len(events) != 2 {
			t.Fatalf("%d events (%v)", len(events), err)
		}
		for _, e := range events {
			if r := e.Event.Resource; r != fwk.Node && r != fwk.TargetPod {
				t.Errorf("event of %s", r)
			}
			if hint, err := e.QueueingHintFn(klog.Background(), asking("p", "racks"), &v1.Service{},
				&v1.Service{}); err == nil || hint != fwk.Queue {
				t.Errorf("hint %v (%v), want Queue and an error", hint, err)
			}
		}
	})
}
