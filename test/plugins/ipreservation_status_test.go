package plugins_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	"berth.dev/berth/test/harness/require"
)

// told is what users see of a pool.
type told struct {
	Addresses, Used, Free int64
	Accepted, Reason      string
}

func (c *addressed) pool(t *testing.T, name string) (told, *berthv1alpha1.IPPool) {
	t.Helper()
	o, _ := c.API.Get(poolsResource, types.NamespacedName{Name: name}).(*unstructured.Unstructured)
	if o == nil {
		t.Fatalf("there is no pool %s", name)
	}
	p := &berthv1alpha1.IPPool{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, p))
	seen := told{Addresses: p.Status.Addresses, Used: p.Status.Used, Free: p.Status.Free}
	for _, condition := range p.Status.Conditions {
		seen.Accepted, seen.Reason = string(condition.Status), condition.Reason
	}
	return seen, p
}

func TestTheStatusOfAPoolSaysWhatIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := giveOut(t, `IPPool small {subnets: [{domain: {key: rack, value: r1}, ranges: [10.0.0.1-10.0.0.2]}, {ranges: [10.0.0.9]}]}`,
			`IPPool part {subnets: [{ranges: [10.0.0.2]}]}`, `IPPool six {subnets: [{ranges: ["2001:db8::/32"]}]}`, `IPPool bad {subnets: [{ranges: [10.0.0.9-10.0.0.1]}]}`,
			`IPReservation ip-10-0-0-1 {address: 10.0.0.1, releasePolicy: Retain, pod: {namespace: default, name: q}}`)
		check := func(when string, want map[string]told) {
			pass(minute)
			got := map[string]told{}
			for name := range want {
				got[name], _ = c.pool(t, name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		p := c.add(t, asking("p", "small"))
		check("at first", map[string]told{"small": {3, 1, 2, "True", "Usable"}, "part": {1, 0, 1, "True", "Usable"},
			"six": {1 << 48, 0, 1 << 48, "True", "Usable"}, "bad": {0, 0, 0, "False", "Invalid"}})
		state := c.reserve(t, p)
		check("with a promise", map[string]told{"small": {3, 2, 1, "True", "Usable"}, "part": {1, 1, 0, "True", "Usable"}})
		c.RunReservePluginsUnreserve(t.Context(), state, p, onlyNode)
		check("without it", map[string]told{"small": {3, 1, 2, "True", "Usable"}, "part": {1, 0, 1, "True", "Usable"}})
		c.Delete(t, reservationsResource, "", "ip-10-0-0-1")
		c.Delete(t, poolsResource, "", "part")
		c.apply(t, `IPPool bad {subnets: [{ranges: [10.0.1.1-10.0.1.9]}]}`)
		check("when a reservation and a pool are gone, and another is mended",
			map[string]told{"small": {3, 0, 3, "True", "Usable"}, "bad": {9, 0, 9, "True", "Usable"}})
		if _, bad := c.pool(t, "bad"); bad.Status.Conditions[0].ObservedGeneration != bad.Generation || bad.Generation == 0 {
			t.Errorf("the condition is about generation %d of %d", bad.Status.Conditions[0].ObservedGeneration, bad.Generation)
		}
		_, before := c.pool(t, "small")
		pass(minute)
		if _, after := c.pool(t, "small"); after.ResourceVersion != before.ResourceVersion {
			t.Error("a status that has not changed is written again")
		}
	})
}

// candidate is a scheduler that leads once it is set.
type candidate struct{ atomic.Bool }

func (c *candidate) Leads() bool { return c.Load() }

// Schedulers that wait for the lease see pools, too.
func TestTheStatusOfAPoolIsWrittenByTheLeaderAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leads := &candidate{}
		setup := addressSetup(t, onePerRack)
		setup.Leader = leads
		c := startAddressed(t, setup)
		pass(minute)
		if got, _ := c.pool(t, "racks"); got != (told{}) {
			t.Errorf("a scheduler that does not lead has written %v", got)
		}
		leads.Store(true)
		pass(minute)
		if got, _ := c.pool(t, "racks"); got.Addresses != 2 {
			t.Errorf("a scheduler that leads has written %v", got)
		}
	})
}

// It does not run beside others, for a process has one scheduler whose metrics it tells.
func TestMetricsTellHowManyAddressesAreLeft(t *testing.T) {
	names := []string{"berth_ip_addresses_free", "berth_ip_addresses_used"}
	synctest.Test(t, func(t *testing.T) {
		c := giveOut(t, onePerRack, `IPPool any {subnets: [{ranges: [10.0.3.1-10.0.3.5]}]}`,
			`IPReservation ip-10-0-1-1 {address: 10.0.1.1, pod: {namespace: default, name: q}}`)
		c.reserve(t, asking("p", "any"))
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
		if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(want), names...); err != nil {
			t.Error(err)
		}
	})
	// That scheduler has ended.
	if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(""), names...); err != nil {
		t.Error(err)
	}
}
