package plugins_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/apis/config"
)

const onePerRack = `IPPool racks {subnets: [{domain: {key: rack, value: r1}, ranges: [10.0.1.1]}, {domain: {key: rack, value: r2}, ranges: [10.0.2.1]}]}`

// Another scheduler takes the address after this one has promised it: the API server tells, and the pod gets another.
func TestAnAddressThatAnotherSchedulerTakes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		old := giveOut(t, `IPPool any {subnets: [{ranges: [10.0.0.1-10.0.0.2]}]}`)
		p, q := old.add(t, asking("p", "any")), old.add(t, asking("q", "any"))
		fresh := beside(t, old.API)
		pass(second)
		first, second := old.reserve(t, p), fresh.reserve(t, q)
		if reason := old.preBind(t, first, p); reason != "" {
			t.Fatal(reason)
		}
		if reason := fresh.preBind(t, second, q); !strings.Contains(reason, "already exists") {
			t.Errorf("the second scheduler says %q", reason)
		}
		synctest.Wait()
		if reason := fresh.preBind(t, fresh.reserve(t, q), q); reason != "" {
			t.Error(reason)
		}
		want := map[string]string{"p": "10.0.0.1", "q": "10.0.0.2"}
		got := map[string]string{"p": old.annotation("p", "berth.dev/ip-address"),
			"q": old.annotation("q", "berth.dev/ip-address")}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("addresses (-want +got):\n%s", diff)
		}
	})
}

func TestWhatIsWrittenOfAnAddress(t *testing.T) {
	bubble(t, func(t *testing.T) {
		args := &config.IPReservationArgs{AddressAnnotation: ptr.To("cni.projectcalico.org/ipAddrs"),
			AddressFormat: ptr.To(config.AddressJSONList)}
		setup := addressSetup(t, `IPPool racks {releasePolicy: Retain, subnets: [{domain: {key: rack, value: r1}, ranges: ["2001:db8::/64"]}]}`)
		c := startAddressed(t, setArgs(setup, args))
		p := asking("db-3", "racks")
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "db"},
			appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
		c.add(t, p)
		next := c.add(t, asking("next", "racks"))
		c.mustBind(t, p)
		c.mustBind(t, next) // before an informer has told of the reservation
		want := map[string]any{"address": "2001:db8::1", "pool": "racks", "podUID": "db-3", "releasePolicy": "Retain",
			"domain": map[string]any{"key": "rack", "value": "r1"},
			"pod":    map[string]any{"namespace": "default", "name": "db-3", "statefulSet": "db"}}
		if diff := cmp.Diff(want, c.reservation("ip-2001-db8--1")); diff != "" {
			t.Errorf("reservation (-want +got):\n%s", diff)
		}
		if got := c.annotation("db-3", "cni.projectcalico.org/ipAddrs"); got != `["2001:db8::1"]` {
			t.Errorf("the annotation is %s", got)
		}
		if got := c.annotation("next", "cni.projectcalico.org/ipAddrs"); got != `["2001:db8::2"]` {
			t.Errorf("the annotation of the next pod is %s", got)
		}
	})
}

// Pods that get no address are alike to the plugin, and become what they are when a reservation is made for them.
func TestPodsWithoutAnAddressAreSignedAlike(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := giveOut(t, onePerRack)
		signs := func(p *v1.Pod) bool {
			fragments, status := c.plugin.SignPod(t.Context(), p)
			if len(fragments) > 0 {
				t.Errorf("pod %s is signed by %v", p.Name, fragments)
			}
			return status.IsSuccess()
		}
		labeled := asking("q", "")
		labeled.Labels = map[string]string{"index": "1"}
		for want, pods := range map[bool][]*v1.Pod{true: {asking("p", ""), labeled},
			false: {asking("r", "racks"), asking("s", "missing"), asking("t", "A B")}} {
			for _, p := range pods {
				if signs(p) != want {
					t.Errorf("pod %s with annotations %v is signed: %t", p.Name, p.Annotations, !want)
				}
			}
		}
		c.apply(t, `IPReservation ip-10-0-9-1 {address: 10.0.9.1, pod: {namespace: default, name: p}}`)
		pass(second)
		if signs(asking("p", "")) || !signs(labeled) {
			t.Error("after a reservation for p, p is signed or q is not")
		}
	})
}
