package plugins_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/box"
)

// threeRacks is a node in each of two racks, and two in a third one.
const threeRacks = `shapes:
- {name: one, count: 1, labels: {rack: r1}, allocatable: {cpu: "16", memory: 64Gi}}
- {name: two, count: 1, labels: {rack: r2}, allocatable: {cpu: "16", memory: 64Gi}}
- {name: three, count: 2, labels: {rack: r3}, allocatable: {cpu: "16", memory: 64Gi}}
`

// addresses is a test's part of a control plane with the shipped configuration.
type addresses struct{ *box.Box }

func (a *addresses) resource(kind string) dynamic.ResourceInterface {
	return a.Dynamic.Resource(schema.GroupVersionResource{Group: "berth.dev", Version: "v1alpha1",
		Resource: strings.ToLower(kind) + "s"})
}

// apply creates an object and returns its version.
func (a *addresses) apply(t *testing.T, kind, name, spec string) (version string, err error) {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "berth.dev/v1alpha1", "kind": kind,
		"spec": fields}}
	object.SetName(name)
	made, err := a.resource(kind).Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return made.GetResourceVersion(), nil
}

// mustApply returns when the scheduler has heard of the object: pods that come later find it.
func (a *addresses) mustApply(t *testing.T, kind, name, spec string) {
	t.Helper()
	version, err := a.apply(t, kind, name, spec)
	if err != nil {
		t.Fatal(err)
	}
	a.AwaitHeard(t, strings.ToLower(kind)+"s", version)
}

func podNamed(name, pool string) *v1.Pod {
	p := pod(name, "berth-scheduler")
	if pool != "" {
		p.Annotations["berth.dev/ip-pool"] = pool
	}
	return p
}

// placed waits until the pod has a node, and returns its address.
func (a *addresses) placed(t *testing.T, name, node string) string {
	t.Helper()
	return a.Bound(t, name, node).Annotations["berth.dev/ip-address"]
}

func (a *addresses) released(t *testing.T, name string) {
	t.Helper()
	a.AwaitGone(t, a.resource("IPReservation"), name)
}

// testAddresses tells of pools, races, restarts and release.
func testAddresses(t *testing.T, b *box.Box) {
	a := &addresses{b.Part(t, "addresses", threeRacks)}
	t.Run("the API server refuses what makes no sense", a.refuses)
	t.Run("two pods race for the last address, and the loser gets it later", a.race)
	t.Run("a gang starts when there are addresses for all of it", a.gang)
	t.Run("a StatefulSet keeps its addresses over restarts", a.statefulSet)
	t.Run("a pod goes where its reservation is routable", a.byHand)
	t.Run("an address that somebody else takes is not given", a.stranger)
	t.Run("a member of a StatefulSet keeps its address when its node dies", a.deadNode)
	t.Run("an address is retained until its reservation is deleted", a.retains)
	t.Run("two schedulers give no address twice", a.rivals)
	t.Run("without the CRDs, pods that ask wait and others run", a.crds)
}

func (a *addresses) refuses(t *testing.T) {
	pod := `pod: {namespace: default, name: p}`
	for _, test := range []struct{ kind, name, spec, says string }{
		{"IPReservation", "ip-10-0-0-1", `{address: 10.0.0.1, pod: {namespace: default, statefulSet: s}}`, "spec.pod.name"},
		{"IPReservation", "ip-10-0-0-2", `{address: 10.0.0.1, ` + pod + `}`, "the name must be"},
		{"IPReservation", "ip-10-0-0-256", `{address: 10.0.0.256, ` + pod + `}`, "canonical"},
		{"IPReservation", "ip-2001-db8--0-1", `{address: "2001:db8::0:1", ` + pod + `}`, "canonical"},
		{"IPReservation", "ip-10-0-0-1", `{address: 10.0.0.1, releasePolicy: Never, ` + pod + `}`, "Unsupported value"},
		{"IPPool", "p", `{subnets: []}`, "at least 1"},
		{"IPPool", "p", `{subnets: [{ranges: [10.0.0.0/33]}]}`, "a range is"},
		{"IPPool", "p", `{subnets: [{ranges: [10.0.0.1-x]}]}`, "a range is"},
	} {
		if _, err := a.apply(t, test.kind, test.name, test.spec); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s %s: error %v, want one that says %q", test.kind, test.spec, err, test.says)
		}
	}
	a.mustApply(t, "IPReservation", "ip-2001-db8--0", `{address: "2001:db8::", `+pod+`}`)
	if err := a.resource("IPReservation").Delete(t.Context(), "ip-2001-db8--0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (a *addresses) race(t *testing.T) {
	a.Create(t, podNamed("early", "small"))
	a.Pending(t, "early", "there is no IPPool small")
	a.mustApply(t, "IPPool", "small", `{releasePolicy: OnPodDeletion, subnets: [{domain: {key: rack, value: r1}, ranges: [10.0.0.1-10.0.0.2]}]}`)
	if got := a.placed(t, "early", "one-0"); got != "10.0.0.1" {
		t.Errorf("the first pod has address %q", got)
	}
	a.Create(t, podNamed("left", "small"))
	a.Create(t, podNamed("right", "small"))
	winner, loser := "left", "right"
	a.AwaitPods(t, "one of two to run", func(pods []*v1.Pod) (bool, error) {
		for _, p := range pods {
			if p.Spec.NodeName != "" && p.Name == loser {
				winner, loser = loser, winner
			}
		}
		return slices.ContainsFunc(pods, func(p *v1.Pod) bool { return p.Name == winner && p.Spec.NodeName != "" }), nil
	})
	if got := a.placed(t, winner, "one-0"); got != "10.0.0.2" {
		t.Errorf("the winner has address %q", got)
	}
	a.Pending(t, loser, "pool small has no free address in domain rack=r1")
	a.Pending(t, loser, "node(s) outside the domains of pool small")
	a.KillScheduler(t)
	a.Create(t, podNamed("later", "small"))
	a.Pending(t, "later", "pool small has no free address in domain rack=r1")
	a.Remove(t, "later")
	a.Remove(t, "early")
	if got := a.placed(t, loser, "one-0"); got != "10.0.0.1" {
		t.Errorf("the loser has address %q", got)
	}
	a.Remove(t, winner)
	a.Remove(t, loser)
	a.released(t, "ip-10-0-0-1")
	a.released(t, "ip-10-0-0-2")
}

func (a *addresses) gang(t *testing.T) {
	a.mustApply(t, "IPPool", "gang", `{releasePolicy: OnPodDeletion, subnets: [{domain: {key: rack, value: r1}, ranges: [10.2.0.1-10.2.0.2]}]}`)
	names := numbered("g", 3)
	for _, name := range names {
		p := podNamed(name, "gang")
		ganged("g", "3")(p)
		a.Create(t, p)
	}
	a.Pending(t, "g-0",
		"gang addresses/g needs 3 × pod, fits 2; 1 more is needed (3 nodes outside the domains of pool gang")
	r, err := a.resource("IPReservation").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(r.Items) > 0 {
		t.Errorf("a gang that only is planned has %d reservations (%v)", len(r.Items), err)
	}
	patch := []byte(`{"spec": {"subnets": [{"domain": {"key": "rack", "value": "r1"}, "ranges": ["10.2.0.1-10.2.0.2"]}, {"domain": {"key": "rack", "value": "r2"}, "ranges": ["10.2.1.1"]}]}}`)
	if _, err := a.resource("IPPool").Patch(t.Context(), "gang", types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	given := map[string]bool{}
	for _, name := range names {
		given[a.placed(t, name, "")] = true
	}
	if !given["10.2.0.1"] || !given["10.2.0.2"] || !given["10.2.1.1"] {
		t.Errorf("the gang has addresses %v", given)
	}
	for _, name := range names {
		a.Remove(t, name)
	}
	a.released(t, "ip-10-2-1-1")
}

// member is a pod as the StatefulSet controller makes it, which does not run here.
func (a *addresses) member(t *testing.T, set *appsv1.StatefulSet, ordinal int) *v1.Pod {
	t.Helper()
	p := podNamed(fmt.Sprintf("%s-%d", set.Name, ordinal), "wide")
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set,
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	return p
}

func (a *addresses) statefulSet(t *testing.T) {
	a.mustApply(t, "IPPool", "wide", `{subnets: [{domain: {key: rack, value: r1}, ranges: [10.1.1.0/24]}, {domain: {key: rack, value: r2}, ranges: ["2001:db8::/64"]}]}`)
	labels := map[string]string{"app": "db"}
	set, err := a.Client.AppsV1().StatefulSets(a.Namespace).Create(t.Context(),
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](0), ServiceName: "db", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podNamed("x", "").Spec}}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	had := map[int]string{}
	for i := range 3 {
		a.Create(t, a.member(t, set, i))
		had[i] = a.placed(t, fmt.Sprint("db-", i), "")
	}
	if had[0] == "" || had[0] == had[1] || had[1] == had[2] || had[0] == had[2] {
		t.Fatalf("the members have addresses %v", had)
	}
	for i := range 3 {
		a.Remove(t, fmt.Sprint("db-", i))
	}
	a.KillScheduler(t)
	for i := 2; i >= 0; i-- {
		a.Create(t, a.member(t, set, i))
		if got := a.placed(t, fmt.Sprint("db-", i), ""); got != had[i] {
			t.Errorf("member %d has address %q, and had %q", i, got, had[i])
		}
	}
	names := map[int]string{}
	for i, a := range had {
		names[i] = "ip-" + strings.NewReplacer(".", "-", ":", "-").Replace(a)
	}
	if err := a.Client.AppsV1().StatefulSets(a.Namespace).Delete(t.Context(), "db",
		metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := a.resource("IPReservation").Get(t.Context(), names[i], metav1.GetOptions{}); err != nil {
			t.Errorf("the reservation of a pod that runs: %v", err)
		}
		a.Remove(t, fmt.Sprint("db-", i))
	}
	for i := range 3 {
		a.released(t, names[i])
	}
}

func (a *addresses) byHand(t *testing.T) {
	a.mustApply(t, "IPReservation", "ip-10-5-0-1", `{address: 10.5.0.1, domain: {key: rack, value: r2}, pod: {namespace: addresses, name: server}, releasePolicy: Retain}`)
	// Nothing else tells the pod to wait for its reservation.
	a.mustApply(t, "IPPool", "five", `{subnets: [{ranges: [10.5.0.1]}]}`)
	a.AwaitObject(t, a.resource("IPPool"), "five", "to count the reservation", func(pool *unstructured.Unstructured) (bool,
		error) {
		used, _, err := unstructured.NestedInt64(pool.Object, "status", "used")
		return used == 1, err
	})
	a.Create(t, podNamed("server", ""))
	if got := a.placed(t, "server", "two-0"); got != "10.5.0.1" {
		t.Errorf("the pod has address %q", got)
	}
	a.Remove(t, "server")
	a.Create(t, podNamed("server", ""))
	if got := a.placed(t, "server", "two-0"); got != "10.5.0.1" {
		t.Errorf("the pod that came back has address %q", got)
	}
	a.Remove(t, "server")
}

func (a *addresses) stranger(t *testing.T) {
	a.mustApply(t, "IPReservation", "ip-10-6-0-1", `{address: 10.6.0.1, pod: {namespace: other, name: router}}`)
	a.mustApply(t, "IPPool", "six", `{subnets: [{ranges: [10.6.0.1-10.6.0.2]}]}`)
	a.Create(t, podNamed("guest", "six"))
	if got := a.placed(t, "guest", ""); got != "10.6.0.2" {
		t.Errorf("the pod has address %q", got)
	}
	a.Remove(t, "guest")
	a.released(t, "ip-10-6-0-2")
}
