package podview

import (
	"net/netip"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func TestStatefulSetOf(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ kind, version, want string }{
		"a pod of its own":               {},
		"a member of a StatefulSet":      {kind: "StatefulSet", version: "apps/v1", want: "db"},
		"a pod of another controller":    {kind: "ReplicaSet", version: "apps/v1"},
		"a StatefulSet of another group": {kind: "StatefulSet", version: "apps.kruise.io/v1"},
	} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "db-2"}}
		if test.kind != "" {
			controller := true
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: test.version, Kind: test.kind, Name: "db",
				Controller: &controller}}
		}
		if got := StatefulSetOf(pod); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
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
