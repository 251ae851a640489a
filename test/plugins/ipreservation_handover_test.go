package plugins_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Two schedulers promise one pod an address each while one is losing the lead. It keeps the one that it was told first,
// whether or not it is bound yet, and the other one is given back.
func TestTwoSchedulersGiveOnePodAnAddressEach(t *testing.T) {
	t.Parallel()
	for _, bound := range []bool{true, false} {
		t.Run(fmt.Sprintf("bound=%t", bound), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				old := giveOut(t, `IPPool any {releasePolicy: Retain, subnets: [{ranges: [10.0.0.1-10.0.0.9]}]}`)
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
				if bound {
					old.land(t, p)
				}
				if reason := fresh.preBind(t, second, p); !strings.Contains(reason, "has given the pod another address") {
					t.Errorf("the second scheduler says %q", reason)
				}
				pass(minute)
				if got := old.annotation("p", "berth.dev/ip-address"); got != "10.0.0.1" {
					t.Errorf("the pod has %s", got)
				}
				if diff := cmp.Diff(map[string]string{"10.0.0.1": "p"}, old.reserved()); diff != "" {
					t.Errorf("reserved (-want +got):\n%s", diff)
				}
				if reasons := fresh.filter(t, asking("r", "any")); len(reasons) > 0 {
					t.Errorf("a pod that comes later is refused: %v", reasons)
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
				c.apply(t, `IPReservation ip-10-0-0-1 {address: 10.0.0.1, podUID: p-0, releasePolicy: `+test.policy+`, pod: {namespace: default, name: p-0, statefulSet: p}}`)
				pass(minute)
				if got := c.reservation("ip-10-0-0-1"); (got == nil) != test.released {
					t.Errorf("the reservation is %v", got)
				}
			})
		})
	}
}
