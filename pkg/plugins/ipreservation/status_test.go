package ipreservation

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/testutil"

	"berth.dev/berth/pkg/apis/config"
	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
)

// told is what users see of a pool.
type told struct {
	Addresses, Used, Free int64
	Accepted, Reason      string
}

func (c *cluster) pool(t *testing.T, name string) (told, *networkv1alpha1.IPPool) {
	t.Helper()
	o, _ := c.api.Get(poolKind.Resource, types.NamespacedName{Name: name}).(*unstructured.Unstructured)
	if o == nil {
		t.Fatalf("there is no pool %s", name)
	}
	p := &networkv1alpha1.IPPool{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, p); err != nil {
		t.Fatal(err)
	}
	seen := told{Addresses: p.Status.Addresses, Used: p.Status.Used, Free: p.Status.Free}
	for _, condition := range p.Status.Conditions {
		seen.Accepted, seen.Reason = string(condition.Status), condition.Reason
	}
	return seen, p
}

func TestTheStatusOfAPoolSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, nil, &config.IPReservationArgs{}, `IPPool small {subnets: [{domain: {key: rack, value: r1}, ranges: [10.0.0.1-10.0.0.2]}, {ranges: [10.0.0.9]}]}`,
			`IPPool part {subnets: [{ranges: [10.0.0.2]}]}`, `IPPool six {subnets: [{ranges: ["2001:db8::/32"]}]}`, `IPPool bad {subnets: [{ranges: [10.0.0.9-10.0.0.1]}]}`,
			`IPReservation ip-10-0-0-1 {address: 10.0.0.1, releasePolicy: Retain, pod: {namespace: default, name: q}}`)
		check := func(when string, want map[string]told) {
			rest()
			got := map[string]told{}
			for name := range want {
				got[name], _ = c.pool(t, name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		p := c.create(t, asking("p", "small"))
		c.ready(t)
		overlaps := "Overlaps"
		check("at first", map[string]told{"small": {3, 1, 2, "True", overlaps}, "part": {1, 0, 1, "True", overlaps},
			"six": {math.MaxInt64, 0, math.MaxInt64, "True", "Usable"}, "bad": {0, 0, 0, "False", "Invalid"}})
		state := c.reserve(t, p)
		check("with a promise", map[string]told{"small": {3, 2, 1, "True", overlaps}, "part": {1, 1, 0, "True", overlaps}})
		c.framework.RunReservePluginsUnreserve(t.Context(), state, p, onlyNode)
		check("without it", map[string]told{"small": {3, 1, 2, "True", overlaps}, "part": {1, 0, 1, "True", overlaps}})
		c.remove(t, reservationKind, "ip-10-0-0-1")
		c.remove(t, poolKind, "part")
		c.apply(t, `IPPool bad {subnets: [{ranges: [10.0.1.1-10.0.1.9]}]}`)
		check("when a reservation and a pool are gone, and another is mended", map[string]told{"small": {3, 0, 3, "True", "Usable"}, "bad": {9, 0, 9, "True", "Usable"}})
		if _, bad := c.pool(t, "bad"); bad.Status.ObservedGeneration != bad.Generation || bad.Generation == 0 {
			t.Errorf("the status is about generation %d of %d", bad.Status.ObservedGeneration, bad.Generation)
		}
		if len(c.framework.Recorder.Events) != 1 {
			t.Fatalf("%d events", len(c.framework.Recorder.Events))
		}
		if e := <-c.framework.Recorder.Events; !strings.Contains(e, "Invalid no address is given out: spec.subnets[0].ranges") {
			t.Errorf("the event says %q", e)
		}
		_, before := c.pool(t, "small")
		rest()
		if _, after := c.pool(t, "small"); after.ResourceVersion != before.ResourceVersion {
			t.Error("a status that has not changed is written again")
		}
	})
}

// Schedulers that wait for the lease see pools, too. This one has run no cycle, and it is not known yet whether it leads.
func TestAStatusIsWrittenByTheLeaderAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, nil, &config.IPReservationArgs{}, onePerRack)
		synctest.Wait()
		if got, _ := c.pool(t, "racks"); got != (told{}) {
			t.Errorf("a scheduler that may not lead has written %v", got)
		}
		rest()
		if got, _ := c.pool(t, "racks"); got.Addresses != 2 {
			t.Errorf("a scheduler without an election has written %v", got)
		}
	})
}

func TestWhatAConditionSays(t *testing.T) {
	t.Parallel()
	many := []string{"a", "b", "c", "d", "e", "f", "g"}
	for name, test := range map[string]struct {
		overlaps []string
		want     string
	}{
		"no other pool":    {nil, "addresses are given out"},
		"another pool":     {many[:1], "has addresses in common with a; each is given once, and counts in every pool that has it"},
		"many other pools": {many, "has addresses in common with a, b, c, d, e and 2 more; each is given once, and counts in every pool that has it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := accepted(poolState{IPPool: &networkv1alpha1.IPPool{}, overlaps: test.overlaps})
			if c.Message != test.want || c.Status != metav1.ConditionTrue {
				t.Errorf("the condition is %s: %q", c.Status, c.Message)
			}
		})
	}
}

func TestMetricsTellWhatIsLeft(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil, &config.IPReservationArgs{}, onePerRack, `IPPool any {subnets: [{ranges: [10.0.3.1-10.0.3.5]}]}`,
		`IPReservation ip-10-0-1-1 {address: 10.0.1.1, pod: {namespace: default, name: q}}`)
	c.ready(t)
	c.reserve(t, asking("p", "any"))
	own := &collector{}
	own.book.Store(c.plugin.book)
	registry := testutil.NewFakeKubeRegistry("1.37.0")
	registry.CustomMustRegister(own)
	want := `# HELP berth_ip_addresses_free [ALPHA] Addresses of a pool that are free.
# TYPE berth_ip_addresses_free gauge
berth_ip_addresses_free{domain="any node",pool="any"} 4
berth_ip_addresses_free{domain="rack=r1",pool="racks"} 0
berth_ip_addresses_free{domain="rack=r2",pool="racks"} 1
# HELP berth_ip_addresses_used [ALPHA] Addresses of a pool that are reserved or promised.
# TYPE berth_ip_addresses_used gauge
berth_ip_addresses_used{domain="any node",pool="any"} 1
berth_ip_addresses_used{domain="rack=r1",pool="racks"} 1
berth_ip_addresses_used{domain="rack=r2",pool="racks"} 0
`
	if err := testutil.GatherAndCompare(registry, bytes.NewReader([]byte(want)), "berth_ip_addresses_free", "berth_ip_addresses_used"); err != nil {
		t.Error(err)
	}
}

func TestMetricsOfASchedulerThatHasEnded(t *testing.T) {
	t.Parallel()
	registry := testutil.NewFakeKubeRegistry("1.37.0")
	registry.CustomMustRegister(&collector{})
	if families, err := registry.Gather(); err != nil || len(families) > 0 {
		t.Errorf("%d metrics without a scheduler (%v)", len(families), err)
	}
}
