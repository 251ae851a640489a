package ipreservation

import (
	"strings"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/pkg/apis/config"
)

// land binds a pod as a scheduler does, beside the framework.
func (c *cluster) land(t *testing.T, pod *v1.Pod) {
	t.Helper()
	binding := &v1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, Target: v1.ObjectReference{Kind: "Node", Name: onlyNode}}
	if err := c.framework.ClientSet().CoreV1().Pods(pod.Namespace).Bind(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// Two schedulers, of which one is losing the lead, promise one pod an address each. It keeps the one that it is bound with, and
// the other one is given back.
func TestTwoSchedulersGiveOnePodAnAddressEach(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Retain", "OnPodDeletion"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				old := newCluster(t, nil, &config.IPReservationArgs{}, `IPPool any {releasePolicy: `+policy+`, releaseAfter: 1h, subnets: [{ranges: [10.0.0.1-10.0.0.9]}]}`)
				fresh := newCluster(t, old.api, &config.IPReservationArgs{})
				synctest.Wait() // what is created between the list and the watch of an informer would be seen after a pause
				p := asking("p", "any")
				p.Spec.SchedulerName = profile
				old.create(t, p)
				synctest.Wait()
				first := old.reserve(t, p)
				fresh.reserve(t, asking("q", "any"))
				second := fresh.reserve(t, p)
				if reason := old.bind(t, first, p); reason != "" {
					t.Fatal(reason)
				}
				old.land(t, p)
				if reason := fresh.bind(t, second, p); !strings.Contains(reason, "the pod is bound to node") {
					t.Errorf("the second scheduler says %q", reason)
				}
				if got := old.annotations("p")["berth.dev/ip-address"]; got != "10.0.0.1" {
					t.Errorf("the pod runs with %s", got)
				}
				if fresh.reservation("ip-10-0-0-2") == nil {
					t.Fatal("the second scheduler has reserved nothing")
				}
				rest()
				if old.reservation("ip-10-0-0-1") == nil || old.reservation("ip-10-0-0-2") != nil {
					t.Errorf("reserved: what the pod runs with %v, the other %v", old.reservation("ip-10-0-0-1"), old.reservation("ip-10-0-0-2"))
				}
			})
		})
	}
}

// The informers of a scheduler are not of one moment: it may have heard of a reservation that another one has made for a pod, and
// not of the pod.
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
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				nothing := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
				api := newAPI()
				if test.set {
					set := &appsv1.StatefulSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
					if err := api.Create(set); err != nil {
						t.Fatal(err)
					}
				}
				c := newClusterWith(t, api, &config.IPReservationArgs{}, func(b *book) {
					b.pods, b.sets = corelisters.NewPodLister(nothing), appslisters.NewStatefulSetLister(nothing)
				})
				p := asking("p-0", "any")
				controller := true
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "p", Controller: &controller}}
				if test.pod {
					c.create(t, p)
				}
				c.apply(t, `IPReservation ip-10-0-0-1 {address: 10.0.0.1, podUID: p-0, releasePolicy: `+test.policy+`, pod: {namespace: default, statefulSet: p, ordinal: 0}}`)
				c.ready(t)
				rest()
				if got := c.reservation("ip-10-0-0-1"); (got == nil) != test.released {
					t.Errorf("the reservation is %v", got)
				}
			})
		})
	}
}

func TestWhatIsNotSurplus(t *testing.T) {
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
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, nil, &config.IPReservationArgs{}, other, `IPReservation ip-10-0-0-2 `+test.object,
					`IPReservation ip-10-0-0-3 {address: 10.0.0.3, pool: any, podUID: q, releasePolicy: Retain, pod: {namespace: default, name: q}}`)
				p := asking("p", "any")
				p.Spec.SchedulerName, p.Spec.NodeName = profile, test.node
				if test.annotation != "" {
					p.Annotations["berth.dev/ip-address"] = test.annotation
				}
				c.create(t, p)
				c.ready(t)
				rest()
				if got := c.reservation("ip-10-0-0-2"); (got == nil) != test.released {
					t.Errorf("the reservation is %v", got)
				}
			})
		})
	}
}
