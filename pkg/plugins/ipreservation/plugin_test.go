package ipreservation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/apis/config"

	"berth.dev/berth/pkg/simulation/plugintest"
)

const onePerRack = `IPPool racks {subnets: [{domain: {key: rack, value: r1}, ranges: [10.0.1.1]}, {domain: {key: rack, value: r2}, ranges: [10.0.2.1]}]}`

func TestWhereAPodMayRun(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		objects []string
		pod     *v1.Pod
		want    map[string]string
		skipped bool
	}{
		"a pod that asks for nothing": {objects: []string{onePerRack}, pod: asking("p", ""), want: map[string]string{}, skipped: true},
		"a pod that others' reservations are nothing to": {objects: []string{`IPReservation ip-10-0-0-1 {address: 10.0.0.1, pod: {namespace: default, name: q}}`},
			pod: asking("p", ""), want: map[string]string{}, skipped: true},
		"a pod of a pool with addresses":   {objects: []string{onePerRack}, pod: asking("p", "racks"), want: map[string]string{}},
		"a pod of a pool that is missing":  {pod: asking("p", "racks"), want: map[string]string{"": "there is no IPPool racks"}},
		"a pool that cannot be used":       {objects: []string{`IPPool racks {subnets: [{ranges: [10.0.0.9-10.0.0.1]}]}`}, pod: asking("p", "racks"), want: map[string]string{"": `pool racks cannot be used: spec.subnets[0].ranges: Invalid value: "10.0.0.9-10.0.0.1": reading range "10.0.0.9-10.0.0.1": the first address is greater than the last one`}},
		"a pool of other namespaces":       {objects: []string{`IPPool racks {namespaces: [x], subnets: [{ranges: [10.0.0.1]}]}`}, pod: asking("p", "racks"), want: map[string]string{"": "pool racks is not for pods of namespace default"}},
		"an annotation that names no pool": {pod: asking("p", "A B"), want: map[string]string{"": `pod annotation berth.dev/ip-pool: "A B" is not the name of an IPPool, such as racks`}},
		"a domain that is full": {objects: []string{onePerRack, `IPReservation ip-10-0-1-1 {address: 10.0.1.1, pod: {namespace: default, name: q}}`},
			pod: asking("p", "racks"), want: map[string]string{"a": "pool racks has no free address in domain rack=r1"}},
		"a reservation in one rack": {objects: []string{`IPReservation ip-10-0-0-1 {address: 10.0.0.1, domain: {key: rack, value: r2}, pod: {namespace: default, name: p}}`},
			pod: asking("p", ""), want: map[string]string{"a": "node(s) where the pod's address is not routable: 10.0.0.1 (rack=r2)"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, nil, &config.IPReservationArgs{}, test.objects...)
			got, state := c.filter(t, test.pod)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
			if state.GetSkipFilterPlugins().Has(Name) != test.skipped {
				t.Errorf("Filter is skipped: %t, want %t", !test.skipped, test.skipped)
			}
			if _, status := c.plugin.SignPod(t.Context(), test.pod); status.IsSuccess() != test.skipped {
				t.Errorf("a pod that is skipped: %t; it is signed: %t", test.skipped, status.IsSuccess())
			}
		})
	}
}

// Another scheduler takes the address after this one has promised it: the API server tells, and the pod gets another.
func TestAnAddressThatAnotherSchedulerTakes(t *testing.T) {
	t.Parallel()
	old := newCluster(t, nil, &config.IPReservationArgs{}, `IPPool any {subnets: [{ranges: [10.0.0.1-10.0.0.2]}]}`)
	p, q := old.create(t, asking("p", "any")), old.create(t, asking("q", "any"))
	fresh := newCluster(t, old.api, &config.IPReservationArgs{})
	old.ready(t, "p", "q")
	fresh.ready(t, "p", "q")
	first, second := old.reserve(t, p), fresh.reserve(t, q)
	if reason := old.bind(t, first, p); reason != "" {
		t.Fatal(reason)
	}
	if reason := fresh.bind(t, second, q); !strings.Contains(reason, "the address is reserved for another pod") {
		t.Errorf("the second scheduler says %q", reason)
	}
	if reason := fresh.bind(t, fresh.reserve(t, q), q); reason != "" {
		t.Error(reason)
	}
	want := map[string]string{"p": "10.0.0.1", "q": "10.0.0.2"}
	got := map[string]string{"p": old.annotations("p")["berth.dev/ip-address"], "q": old.annotations("q")["berth.dev/ip-address"]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

func TestWhatIsWritten(t *testing.T) {
	t.Parallel()
	args := &config.IPReservationArgs{AddressAnnotation: ptr.To("cni.projectcalico.org/ipAddrs"), AddressFormat: ptr.To(config.AddressJSONList)}
	c := newCluster(t, nil, args, `IPPool racks {releasePolicy: Retain, releaseAfter: 1h, subnets: [{domain: {key: rack, value: r1}, ranges: ["2001:db8::/64"]}]}`)
	p := asking("db-3", "racks")
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "db"}, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	c.create(t, p)
	c.ready(t, p.Name)
	if reason := c.bind(t, c.reserve(t, p), p); reason != "" {
		t.Fatal(reason)
	}
	want := map[string]any{"address": "2001:db8::1", "pool": "racks", "podUID": "db-3", "releasePolicy": "Retain", "releaseAfter": "1h0m0s",
		"domain": map[string]any{"key": "rack", "value": "r1"}, "pod": map[string]any{"namespace": "default", "statefulSet": "db", "ordinal": int64(3)}}
	if diff := cmp.Diff(want, c.reservation("ip-2001-db8--1")); diff != "" {
		t.Errorf("reservation (-want +got):\n%s", diff)
	}
	if got := c.annotations("db-3")["cni.projectcalico.org/ipAddrs"]; got != `["2001:db8::1"]` {
		t.Errorf("the annotation is %s", got)
	}
}

// A pod whose binding fails gives its address back, and members of a gang that are tried on nodes take one each.
func TestWhatIsTriedIsGivenBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil, &config.IPReservationArgs{}, onePerRack)
	p := asking("p", "racks")
	state := c.reserve(t, p)
	if reasons, _ := c.filter(t, asking("q", "racks")); reasons["a"] == "" {
		t.Error("a promised address is free")
	}
	c.framework.RunReservePluginsUnreserve(t.Context(), state, p, "a")
	reasons, state := c.filter(t, asking("q", "racks"))
	if len(reasons) > 0 {
		t.Errorf("refused after the address was given back: %v", reasons)
	}
	info, err := c.framework.SnapshotSharedLister().NodeInfos().Get("a")
	if err != nil {
		t.Fatal(err)
	}
	sibling, err := framework.NewPodInfo(p)
	if err != nil {
		t.Fatal(err)
	}
	clone := state.Clone()
	c.framework.RunPreFilterExtensionAddPod(t.Context(), clone, asking("q", "racks"), sibling, info)
	for name, want := range map[fwk.CycleState]string{clone: "pool racks has no free address in domain rack=r1", state: ""} {
		if got := c.framework.RunFilterPlugins(t.Context(), name, asking("q", "racks"), info).Message(); got != want {
			t.Errorf("with a sibling on the node: %q, want %q", got, want)
		}
	}
	c.framework.RunPreFilterExtensionRemovePod(t.Context(), clone, asking("q", "racks"), sibling, info)
	if got := c.framework.RunFilterPlugins(t.Context(), clone, asking("q", "racks"), info); !got.IsSuccess() {
		t.Errorf("without the sibling: %v", got)
	}
}

// Pods that get no address are alike to the plugin, and become what they are when a reservation is made for them.
func TestPodsWithoutAnAddressAreSignedAlike(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil, &config.IPReservationArgs{}, onePerRack)
	c.ready(t)
	signs := func(p *v1.Pod) bool {
		fragments, status := c.plugin.SignPod(t.Context(), p)
		if len(fragments) > 0 {
			t.Errorf("pod %s is signed by %v", p.Name, fragments)
		}
		return status.IsSuccess()
	}
	labeled := asking("q", "")
	labeled.Labels = map[string]string{"index": "1"}
	for want, pods := range map[bool][]*v1.Pod{true: {asking("p", ""), labeled}, false: {asking("r", "racks"), asking("s", "missing"), asking("t", "A B")}} {
		for _, p := range pods {
			if signs(p) != want {
				t.Errorf("pod %s with annotations %v is signed: %t", p.Name, p.Annotations, !want)
			}
		}
	}
	c.apply(t, `IPReservation ip-10-0-9-1 {address: 10.0.9.1, pod: {namespace: default, name: p}}`)
	plugintest.Await(t, "the reservation", func() bool { return !c.plugin.book.ledger.Empty() })
	if signs(asking("p", "")) || !signs(labeled) {
		t.Error("after a reservation for p, p is signed or q is not")
	}
}
