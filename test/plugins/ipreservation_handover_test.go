package plugins_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Two schedulers promise one pod an address each while one is losing the lead. It keeps the one that it is bound with,
// and the other one is given back.
func TestTwoSchedulersGiveOnePodAnAddressEach(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Retain", "OnPodDeletion"} {
		t.Run(policy, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				old := giveOut(t, `IPPool any {releasePolicy: `+policy+`, releaseAfter: 1h, subnets: [{ranges: [10.0.0.1-10.0.0.9]}]}`)
				fresh := beside(t, old.API)
				synctest.Wait() // what is created between the list and the watch of an informer would be seen after a pause
				p := asking("p", "any")
				old.add(t, p)
				synctest.Wait()
				first := old.reserve(t, p)
				fresh.reserve(t, asking("q", "any"))
				second := fresh.reserve(t, p)
				if reason := old.preBind(t, first, p); reason != "" {
					t.Fatal(reason)
				}
				old.land(t, p)
				if reason := fresh.preBind(t, second, p); !strings.Contains(reason, "the pod is bound to node") {
					t.Errorf("the second scheduler says %q", reason)
				}
				if got := old.annotation("p", "berth.dev/ip-address"); got != "10.0.0.1" {
					t.Errorf("the pod runs with %s", got)
				}
				if fresh.reservation("ip-10-0-0-2") == nil {
					t.Fatal("the second scheduler has reserved nothing")
				}
				pass(minute)
				if old.reservation("ip-10-0-0-1") == nil || old.reservation("ip-10-0-0-2") != nil {
					t.Errorf("reserved: what the pod runs with %v, the other %v", old.reservation("ip-10-0-0-1"),
						old.reservation("ip-10-0-0-2"))
				}
			})
		})
	}
}

// The informers of a scheduler are not of one moment: it may have heard of a reservation that another one has made for
// a pod, and not of the pod.
func TestAnAddressOfAPodThatIsNotSeenYetIsNotReleased(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		policy   string
		pod, set bool
		released bool
	}{
		"the pod is there":                        {policy: "OnPodDeletion", pod: true},
		"the pod is there, without a StatefulSet": {policy: "OnStatefulSetDeletion", pod: true},
		"its StatefulSet is there":                {policy: "OnStatefulSetDeletion", set: true},
		"its StatefulSet does not matter":         {policy: "OnPodDeletion", set: true, released: true},
		"neither is there":                        {policy: "OnStatefulSetDeletion", released: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				pods, sets := &blind{resource: "pods"}, &blind{resource: "statefulsets"}
				setup := addressSetup(t)
				setup.Through = func(api http.RoundTripper) http.RoundTripper { return pods.through(sets.through(api)) }
				c := startAddressed(t, setup)
				pass(second)
				pods.see(false)
				sets.see(false)
				if test.set {
					c.Create(t, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}})
				}
				p := asking("p-0", "any")
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "p",
					Controller: new(true)}}
				if test.pod {
					c.add(t, p)
				}
				c.apply(t, `IPReservation ip-10-0-0-1 {address: 10.0.0.1, podUID: p-0, releasePolicy: `+test.policy+`, pod: {namespace: default, statefulSet: p, ordinal: 0}}`)
				c.lead(t)
				pass(minute)
				if got := c.reservation("ip-10-0-0-1"); (got == nil) != test.released {
					t.Errorf("the reservation is %v", got)
				}
			})
		})
	}
}

func TestWhichReservationIsSurplus(t *testing.T) {
	t.Parallel()
	const other = `IPReservation ip-10-0-0-1 {address: 10.0.0.1, pool: any, podUID: p, releasePolicy: Retain, pod: {namespace: default, name: p}}`
	tests := map[string]struct {
		object, annotation, node string
		released                 bool
	}{
		"a second one of the pool":             {object: `{address: 10.0.0.2, pool: any, podUID: p, releasePolicy: Retain, pod: {namespace: default, name: p}}`, annotation: "10.0.0.1", node: "a", released: true},
		"the one that the pod has":             {object: `{address: 10.0.0.2, pool: any, podUID: p, releasePolicy: Retain, pod: {namespace: default, name: p}}`, annotation: "10.0.0.2", node: "a"},
		"one that is made by hand":             {object: `{address: 10.0.0.2, releasePolicy: Retain, pod: {namespace: default, name: p}}`, annotation: "10.0.0.1", node: "a"},
		"one without a pool":                   {object: `{address: 10.0.0.2, podUID: p, releasePolicy: Retain, pod: {namespace: default, name: p}}`, annotation: "10.0.0.1", node: "a"},
		"one of an earlier pod":                {object: `{address: 10.0.0.2, pool: any, podUID: before, releasePolicy: Retain, pod: {namespace: default, name: p}}`, annotation: "10.0.0.1", node: "a"},
		"one of a pod that is not bound":       {object: `{address: 10.0.0.2, pool: any, podUID: p, releasePolicy: Retain, pod: {namespace: default, name: p}}`, annotation: "10.0.0.1"},
		"one of a pod with a made-up address":  {object: `{address: 10.0.0.2, pool: any, podUID: p, releasePolicy: Retain, pod: {namespace: default, name: p}}`, annotation: "10.0.0.77", node: "a"},
		"one of a pod without an address":      {object: `{address: 10.0.0.2, pool: any, podUID: p, releasePolicy: Retain, pod: {namespace: default, name: p}}`, node: "a"},
		"one of a pod with somebody's address": {object: `{address: 10.0.0.2, pool: any, podUID: p, releasePolicy: Retain, pod: {namespace: default, name: p}}`, annotation: "10.0.0.3", node: "a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := giveOut(t, other, `IPReservation ip-10-0-0-2 `+test.object,
					`IPReservation ip-10-0-0-3 {address: 10.0.0.3, pool: any, podUID: q, releasePolicy: Retain, pod: {namespace: default, name: q}}`)
				p := asking("p", "any")
				p.Spec.NodeName = test.node
				if test.annotation != "" {
					p.Annotations["berth.dev/ip-address"] = test.annotation
				}
				c.add(t, p)
				c.lead(t)
				pass(minute)
				if got := c.reservation("ip-10-0-0-2"); (got == nil) != test.released {
					t.Errorf("the reservation is %v", got)
				}
			})
		})
	}
}
