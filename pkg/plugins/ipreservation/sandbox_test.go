package ipreservation

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// racks is a node in each of two racks, and two in a third one.
const racks = `shapes:
- {name: one, count: 1, labels: {rack: r1}, allocatable: {cpu: "16", memory: 64Gi}}
- {name: two, count: 1, labels: {rack: r2}, allocatable: {cpu: "16", memory: 64Gi}}
- {name: three, count: 2, labels: {rack: r3}, allocatable: {cpu: "16", memory: 64Gi}}
`

// world is a real control plane with the shipped configuration.
type world struct {
	*box.Box
	dynamic dynamic.Interface
}

func (w *world) resource(kind string) dynamic.ResourceInterface {
	return w.dynamic.Resource(schema.GroupVersionResource{Group: "berth.dev", Version: "v1alpha1", Resource: strings.ToLower(kind) + "s"})
}

func (w *world) apply(t *testing.T, kind, name, spec string) error {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "berth.dev/v1alpha1", "kind": kind, "spec": fields}}
	object.SetName(name)
	_, err := w.resource(kind).Create(t.Context(), object, metav1.CreateOptions{})
	return err
}

func (w *world) mustApply(t *testing.T, kind, name, spec string) {
	t.Helper()
	if err := w.apply(t, kind, name, spec); err != nil {
		t.Fatal(err)
	}
}

func podNamed(name, pool string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: v1.PodSpec{
		SchedulerName: "berth-scheduler", TerminationGracePeriodSeconds: ptr.To[int64](0), Containers: []v1.Container{{Name: "main", Image: "image"}}}}
	if pool != "" {
		p.Annotations = map[string]string{"berth.dev/ip-pool": pool}
	}
	return p
}

// placed waits until the pod has a node, and returns its address.
func (w *world) placed(t *testing.T, name, node string) string {
	t.Helper()
	return w.Bound(t, name, node).Annotations["berth.dev/ip-address"]
}

func (w *world) released(t *testing.T, name string) {
	t.Helper()
	w.Await(t, "reservation "+name+" to go", func(ctx context.Context) (bool, error) {
		_, err := w.resource("IPReservation").Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

// TestAddressesOnARealControlPlane tells of pools, races, restarts and release.
//
//nolint:tparallel // the parts of the story follow each other on one control plane
func TestAddressesOnARealControlPlane(t *testing.T) {
	t.Parallel()
	box := box.Start(t, racks, sandbox.Options{NoKubelet: true})
	client, err := dynamic.NewForConfig(box.Config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{box, client}

	t.Run("the API server refuses what makes no sense", w.refuses)
	t.Run("two pods race for the last address, and the loser gets it later", w.race)
	t.Run("a gang starts when there are addresses for all of it", w.gang)
	t.Run("a StatefulSet keeps its addresses over restarts", w.statefulSet)
	t.Run("a pod goes where its reservation is routable", w.byHand)
	t.Run("an address that somebody else takes is not given", w.stranger)
	t.Run("a member of a StatefulSet keeps its address when its node dies", w.deadNode)
	t.Run("an address is retained until its reservation is deleted", w.policies)
	t.Run("two schedulers give no address twice", w.replicas)
	t.Run("without the CRDs, pods that ask wait and others run", w.crds)
}

func (w *world) refuses(t *testing.T) {
	pod := `pod: {namespace: default, name: p}`
	for _, test := range []struct{ kind, name, spec, says string }{
		{"IPReservation", "ip-10-0-0-1", `{address: 10.0.0.1, pod: {namespace: default}}`, "by name or by statefulSet"},
		{"IPReservation", "ip-10-0-0-1", `{address: 10.0.0.1, pod: {namespace: default, name: p, statefulSet: s, ordinal: 0}}`, "by name or by statefulSet"},
		{"IPReservation", "ip-10-0-0-1", `{address: 10.0.0.1, pod: {namespace: default, statefulSet: s}}`, "go together"},
		{"IPReservation", "ip-10-0-0-2", `{address: 10.0.0.1, ` + pod + `}`, "the name must be"},
		{"IPReservation", "ip-10-0-0-256", `{address: 10.0.0.256, ` + pod + `}`, "canonical"},
		{"IPReservation", "ip-2001-db8--0-1", `{address: "2001:db8::0:1", ` + pod + `}`, "canonical"},
		{"IPReservation", "ip-10-0-0-1", `{address: 10.0.0.1, releaseAfter: -1s, ` + pod + `}`, "must not be negative"},
		{"IPReservation", "ip-10-0-0-1", `{address: 10.0.0.1, releasePolicy: Never, ` + pod + `}`, "Unsupported value"},
		{"IPPool", "p", `{subnets: []}`, "at least 1"},
		{"IPPool", "p", `{subnets: [{ranges: [10.0.0.0/33]}]}`, "a range is"},
		{"IPPool", "p", `{subnets: [{ranges: [10.0.0.1-x]}]}`, "a range is"},
		{"IPPool", "p", `{subnets: [{ranges: [10.0.0.1], exclude: ["10.0.0"]}]}`, "a range is"},
	} {
		if err := w.apply(t, test.kind, test.name, test.spec); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s %s: error %v, want one that says %q", test.kind, test.spec, err, test.says)
		}
	}
	w.mustApply(t, "IPReservation", "ip-2001-db8--0", `{address: "2001:db8::", `+pod+`}`)
	if err := w.resource("IPReservation").Delete(t.Context(), "ip-2001-db8--0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) race(t *testing.T) {
	w.Create(t, podNamed("early", "small"))
	w.Pending(t, "early", "there is no IPPool small")
	w.mustApply(t, "IPPool", "small", `{releasePolicy: OnPodDeletion, subnets: [{domain: {key: rack, value: r1}, ranges: [10.0.0.1-10.0.0.2]}]}`)
	if got := w.placed(t, "early", "one-0"); got != "10.0.0.1" {
		t.Errorf("the first pod has address %q", got)
	}
	w.Create(t, podNamed("left", "small"))
	w.Create(t, podNamed("right", "small"))
	winner, loser := "left", "right"
	w.Await(t, "one of two to run", func(ctx context.Context) (bool, error) {
		for _, name := range []string{"left", "right"} {
			p, err := w.Client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			if p.Spec.NodeName != "" {
				winner = name
				if loser = "left"; winner == "left" {
					loser = "right"
				}
				return true, nil
			}
		}
		return false, nil
	})
	if got := w.placed(t, winner, "one-0"); got != "10.0.0.2" {
		t.Errorf("the winner has address %q", got)
	}
	w.Pending(t, loser, "pool small has no free address in domain rack=r1")
	w.Pending(t, loser, "node(s) outside the domains of pool small")
	w.KillScheduler(t)
	w.Create(t, podNamed("later", "small"))
	w.Pending(t, "later", "pool small has no free address in domain rack=r1")
	w.Remove(t, "later")
	w.Remove(t, "early")
	if got := w.placed(t, loser, "one-0"); got != "10.0.0.1" {
		t.Errorf("the loser has address %q", got)
	}
	w.Remove(t, winner)
	w.Remove(t, loser)
	w.released(t, "ip-10-0-0-1")
	w.released(t, "ip-10-0-0-2")
}

func (w *world) gang(t *testing.T) {
	w.mustApply(t, "IPPool", "gang", `{releasePolicy: OnPodDeletion, subnets: [{domain: {key: rack, value: r1}, ranges: [10.2.0.1-10.2.0.2]}]}`)
	names := []string{"g-0", "g-1", "g-2"}
	for _, name := range names {
		p := podNamed(name, "gang")
		p.Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "3"}
		w.Create(t, p)
	}
	w.Pending(t, "g-0", "gang default/g needs 3 × pod, fits 2: 3 nodes outside the domains of pool gang")
	r, err := w.resource("IPReservation").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(r.Items) > 0 {
		t.Errorf("a gang that only is planned has %d reservations (%v)", len(r.Items), err)
	}
	patch := []byte(`{"spec": {"subnets": [{"domain": {"key": "rack", "value": "r1"}, "ranges": ["10.2.0.1-10.2.0.2"]}, {"domain": {"key": "rack", "value": "r2"}, "ranges": ["10.2.1.1"]}]}}`)
	if _, err := w.resource("IPPool").Patch(t.Context(), "gang", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	given := map[string]bool{}
	for _, name := range names {
		given[w.placed(t, name, "")] = true
	}
	if !given["10.2.0.1"] || !given["10.2.0.2"] || !given["10.2.1.1"] {
		t.Errorf("the gang has addresses %v", given)
	}
	for _, name := range names {
		w.Remove(t, name)
	}
	w.released(t, "ip-10-2-1-1")
}

// member is a pod as the StatefulSet controller makes it, which does not run here.
func (w *world) member(t *testing.T, set *appsv1.StatefulSet, ordinal int) *v1.Pod {
	t.Helper()
	p := podNamed(fmt.Sprintf("%s-%d", set.Name, ordinal), "wide")
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	return p
}

func (w *world) statefulSet(t *testing.T) {
	w.mustApply(t, "IPPool", "wide", `{subnets: [{domain: {key: rack, value: r1}, ranges: [10.1.1.0/24]}, {domain: {key: rack, value: r2}, ranges: ["2001:db8::/64"]}]}`)
	labels := map[string]string{"app": "db"}
	set, err := w.Client.AppsV1().StatefulSets("default").Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: appsv1.StatefulSetSpec{
		Replicas: ptr.To[int32](0), ServiceName: "db", Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podNamed("x", "").Spec}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	had := map[int]string{}
	for i := range 3 {
		w.Create(t, w.member(t, set, i))
		had[i] = w.placed(t, fmt.Sprint("db-", i), "")
	}
	if had[0] == "" || had[0] == had[1] || had[1] == had[2] || had[0] == had[2] {
		t.Fatalf("the members have addresses %v", had)
	}
	for i := range 3 {
		w.Remove(t, fmt.Sprint("db-", i))
	}
	w.KillScheduler(t)
	for i := 2; i >= 0; i-- {
		w.Create(t, w.member(t, set, i))
		if got := w.placed(t, fmt.Sprint("db-", i), ""); got != had[i] {
			t.Errorf("member %d has address %q, and had %q", i, got, had[i])
		}
	}
	names := map[int]string{}
	for i, a := range had {
		names[i] = "ip-" + strings.NewReplacer(".", "-", ":", "-").Replace(a)
	}
	if err := w.Client.AppsV1().StatefulSets("default").Delete(t.Context(), "db", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := w.resource("IPReservation").Get(t.Context(), names[i], metav1.GetOptions{}); err != nil {
			t.Errorf("the reservation of a pod that runs: %v", err)
		}
		w.Remove(t, fmt.Sprint("db-", i))
	}
	for i := range 3 {
		w.released(t, names[i])
	}
}

func (w *world) byHand(t *testing.T) {
	w.mustApply(t, "IPReservation", "ip-10-5-0-1", `{address: 10.5.0.1, domain: {key: rack, value: r2}, pod: {namespace: default, name: server}, releasePolicy: OnPodDeletion, releaseAfter: 1h}`)
	// Nothing else tells the pod to wait for its reservation.
	w.mustApply(t, "IPPool", "five", `{subnets: [{ranges: [10.5.0.1]}]}`)
	w.Await(t, "the scheduler to know of the reservation", func(ctx context.Context) (bool, error) {
		pool, err := w.resource("IPPool").Get(ctx, "five", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		used, _, err := unstructured.NestedInt64(pool.Object, "status", "used")
		return used == 1, err
	})
	w.Create(t, podNamed("server", ""))
	if got := w.placed(t, "server", "two-0"); got != "10.5.0.1" {
		t.Errorf("the pod has address %q", got)
	}
	w.Remove(t, "server")
	w.Await(t, "the reservation to be unused", func(ctx context.Context) (bool, error) {
		r, err := w.resource("IPReservation").Get(ctx, "ip-10-5-0-1", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		since, _, _ := unstructured.NestedString(r.Object, "status", "unusedSince")
		return since != "", nil
	})
	w.Create(t, podNamed("server", ""))
	if got := w.placed(t, "server", "two-0"); got != "10.5.0.1" {
		t.Errorf("the pod that came back has address %q", got)
	}
	w.Await(t, "the reservation to be used again", func(ctx context.Context) (bool, error) {
		r, err := w.resource("IPReservation").Get(ctx, "ip-10-5-0-1", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		_, unused, _ := unstructured.NestedString(r.Object, "status", "unusedSince")
		return !unused, nil
	})
	w.Remove(t, "server")
}

func (w *world) stranger(t *testing.T) {
	w.mustApply(t, "IPReservation", "ip-10-6-0-1", `{address: 10.6.0.1, pod: {namespace: other, name: router}}`)
	w.mustApply(t, "IPPool", "six", `{subnets: [{ranges: [10.6.0.1-10.6.0.2]}]}`)
	w.Create(t, podNamed("guest", "six"))
	if got := w.placed(t, "guest", ""); got != "10.6.0.2" {
		t.Errorf("the pod has address %q", got)
	}
	w.Remove(t, "guest")
	w.released(t, "ip-10-6-0-2")
}
