package ipreservation

import (
	"net/netip"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/apis/config"
)

// A pod waits where pool racks has an address in rack r1 and none in rack r2, of which the only one is reserved.
func TestWhatWakesAPodThatIPReservationRefused(t *testing.T) {
	t.Parallel()
	const reserved = `IPReservation ip-10-0-2-1 {address: 10.0.2.1, domain: {key: rack, value: r2}, pod: {namespace: default, name: owner}}`
	labeled := func(n *v1.Node, key, value string) *v1.Node {
		n = n.DeepCopy()
		n.Labels[key] = value
		return n
	}
	cordoned := node("n", "r1")
	cordoned.Spec.Unschedulable = true
	tests := map[string]struct {
		pod           *v1.Pod
		before, after *v1.Node
		// late is done after the plugin has begun.
		late func(c *cluster)
		want fwk.QueueingHint
	}{
		"a node where an address is free comes":                   {pod: asking("p", "racks"), after: node("n", "r1"), want: fwk.Queue},
		"a node where no address is free comes":                   {pod: asking("p", "racks"), after: node("n", "r2"), want: fwk.QueueSkip},
		"a node outside the pool's domains comes":                 {pod: asking("p", "racks"), after: node("n", "r9"), want: fwk.QueueSkip},
		"a node moves to where an address is free":                {pod: asking("p", "racks"), before: node("n", "r2"), after: node("n", "r1"), want: fwk.Queue},
		"a node moves away from where an address is free":         {pod: asking("p", "racks"), before: node("n", "r1"), after: node("n", "r9"), want: fwk.QueueSkip},
		"a node where an address is free gets a label":            {pod: asking("p", "racks"), before: node("n", "r1"), after: labeled(node("n", "r1"), "x", "y"), want: fwk.QueueSkip},
		"a node keeps its labels":                                 {pod: asking("p", "racks"), before: cordoned, after: node("n", "r1"), want: fwk.QueueSkip},
		"a node comes for a pod of a pool that is missing":        {pod: asking("p", "missing"), after: node("n", "r1"), want: fwk.QueueSkip},
		"a node comes for a pod whose annotation cannot be read":  {pod: asking("p", "A B"), after: node("n", "r1"), want: fwk.QueueSkip},
		"a node comes where the pod's reservation is routable":    {pod: asking("owner", ""), after: node("n", "r2"), want: fwk.Queue},
		"a node comes where the pod's reservation is not":         {pod: asking("owner", "racks"), after: node("n", "r1"), want: fwk.QueueSkip},
		"a node moves to where the pod's reservation is routable": {pod: asking("owner", ""), before: node("n", "r1"), after: node("n", "r2"), want: fwk.Queue},
		"a node comes for a pod whose reservation is gone": {pod: asking("owner", ""), after: node("n", "r1"), want: fwk.Queue,
			late: func(c *cluster) {
				c.plugin.book.forget(netip.MustParseAddr("10.0.2.1"), "ip-10-0-2-1", identity("owner"))
			}},
		"a node comes when the last address is promised": {pod: asking("p", "racks"), after: node("n", "r1"), want: fwk.QueueSkip,
			late: func(c *cluster) { c.plugin.book.ledger.Reserve(mustAsk(asking("q", "racks")), node("n", "r1").Labels) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, nil, &config.IPReservationArgs{}, onePerRack, reserved)
			c.ready(t)
			if test.late != nil {
				test.late(c)
			}
			var before any
			if test.before != nil {
				before = test.before
			}
			hint, err := c.plugin.afterNodeChange(klog.Background(), test.pod, before, test.after)
			if err != nil || hint != test.want {
				t.Errorf("hint %v (%v), want %v", hint, err, test.want)
			}
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
			t.Parallel()
			before, after := asking("p", test.before), asking("p", test.after)
			after.Labels = map[string]string{"another": "label"}
			if hint, err := afterOwnChange(klog.Background(), before, before, after); err != nil || hint != test.want {
				t.Errorf("hint %v (%v), want %v", hint, err, test.want)
			}
		})
	}
}

func TestAHintQueuesAfterAnEventThatItCannotRead(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil, &config.IPReservationArgs{})
	if hint, err := c.plugin.afterNodeChange(klog.Background(), asking("p", "racks"), nil, &v1.Pod{}); err == nil || hint != fwk.Queue {
		t.Errorf("hint %v (%v), want Queue and an error", hint, err)
	}
	if hint, err := afterOwnChange(klog.Background(), asking("p", "racks"), &v1.Node{}, &v1.Pod{}); err == nil || hint != fwk.Queue {
		t.Errorf("hint %v (%v), want Queue and an error", hint, err)
	}
}

// The framework gives a plugin no event of an API that may be absent.
func TestNoEventIsOfACustomResource(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil, &config.IPReservationArgs{})
	events, err := c.plugin.EventsToRegister(t.Context())
	if err != nil || len(events) != 2 {
		t.Fatalf("%d events (%v)", len(events), err)
	}
	for _, e := range events {
		if r := e.Event.Resource; r != fwk.Node && r != fwk.TargetPod || e.QueueingHintFn == nil {
			t.Errorf("event of %s, with a hint: %t", r, e.QueueingHintFn != nil)
		}
	}
}
