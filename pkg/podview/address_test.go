package podview

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/address"
	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
	"berth.dev/berth/pkg/wellknown"
)

func TestPodIPPool(t *testing.T) {
	t.Parallel()
	for value, good := range map[string]bool{"racks": true, "a.b-c": true, "": false, "Racks": false, "a b": false,
		"-a": false, strings.Repeat("a", 254): false} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{wellknown.IPPoolKey: value}}}
		got, bad := PodIPPool(pod)
		if (bad == nil) != good || good && got != value {
			t.Errorf("%q is read as %q (%v)", value, got, bad)
		}
	}
	if got, bad := PodIPPool(&v1.Pod{}); got != "" || bad != nil {
		t.Errorf("no annotation is read as %q (%v)", got, bad)
	}
}

func TestPodIdentities(t *testing.T) {
	t.Parallel()
	own := func(name string) address.Identity { return address.Identity{Namespace: "n", Pod: name} }
	tests := map[string]struct {
		pod, kind, version, owner string
		want                      []address.Identity
	}{
		"a pod of its own": {pod: "p", want: []address.Identity{own("p")}},
		"a member of a StatefulSet": {pod: "db-2", kind: "StatefulSet", version: "apps/v1", owner: "db",
			want: []address.Identity{{Namespace: "n", StatefulSet: "db", Ordinal: 2}, own("db-2")}},
		"a member of a set with a hyphen": {pod: "db-2-11", kind: "StatefulSet", version: "apps/v1", owner: "db-2",
			want: []address.Identity{{Namespace: "n", StatefulSet: "db-2", Ordinal: 11}, own("db-2-11")}},
		"a pod of another controller": {pod: "db-2", kind: "ReplicaSet", version: "apps/v1", owner: "db",
			want: []address.Identity{own("db-2")}},
		"a StatefulSet of another group": {pod: "db-2", kind: "StatefulSet", version: "apps.kruise.io/v1", owner: "db",
			want: []address.Identity{own("db-2")}},
		"a name that is not the set's": {pod: "x-2", kind: "StatefulSet", version: "apps/v1", owner: "db",
			want: []address.Identity{own("x-2")}},
		"a name that ends in no ordinal": {pod: "db-x", kind: "StatefulSet", version: "apps/v1", owner: "db",
			want: []address.Identity{own("db-x")}},
		"an ordinal that is negative": {pod: "db--1", kind: "StatefulSet", version: "apps/v1", owner: "db",
			want: []address.Identity{own("db--1")}},
		"an ordinal beyond what there may be": {pod: "db-99999999999", kind: "StatefulSet", version: "apps/v1", owner: "db",
			want: []address.Identity{own("db-99999999999")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: test.pod}}
			if test.kind != "" {
				controller := true
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: test.version, Kind: test.kind, Name: test.owner,
					Controller: &controller}}
			}
			if diff := cmp.Diff(test.want, PodIdentities(pod)); diff != "" {
				t.Errorf("identities (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReservationName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"10.0.0.5": "ip-10-0-0-5", "2001:db8::5": "ip-2001-db8--5",
		"2001:db8::": "ip-2001-db8--0", "::1": "ip---1"} {
		if got := ReservationName(netip.MustParseAddr(text)); got != want {
			t.Errorf("the name for %s is %s, want %s", text, got, want)
		}
	}
}

func TestAddressPool(t *testing.T) {
	t.Parallel()
	pool := func(subnets ...networkv1alpha1.Subnet) *networkv1alpha1.IPPool {
		return &networkv1alpha1.IPPool{ObjectMeta: metav1.ObjectMeta{Name: "p"},
			Spec: networkv1alpha1.IPPoolSpec{Subnets: subnets}}
	}
	good, problems := AddressPool(pool(networkv1alpha1.Subnet{Domain: &networkv1alpha1.Domain{Key: "rack", Value: "a"},
		Ranges: []string{"10.0.0.1"}}))
	if len(problems) > 0 || len(good.Subnets) != 1 || good.Subnets[0].Domain != (address.Domain{Key: "rack", Value: "a"}) {
		t.Errorf("read as %v (%v)", good, problems)
	}
	for says, bad := range map[string]*networkv1alpha1.IPPool{
		"a pool needs addresses": pool(),
		"spec.subnets[0].ranges": pool(networkv1alpha1.Subnet{Ranges: []string{"10.0.0.9-10.0.0.1"}}),
		"has addresses in common with spec.subnets[0]": pool(networkv1alpha1.Subnet{Ranges: []string{"10.0.0.1"}},
			networkv1alpha1.Subnet{Ranges: []string{"10.0.0.0/24"}}),
	} {
		got, problems := AddressPool(bad)
		if len(problems) == 0 || !strings.Contains(got.Problem, says) || len(got.Subnets) > 0 {
			t.Errorf("problem %q with %d subnets, want %q and none", got.Problem, len(got.Subnets), says)
		}
	}
}
