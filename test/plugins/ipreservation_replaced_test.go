package plugins_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const poolOfNine = `IPPool any {releasePolicy: Retain, subnets: [{ranges: [10.0.0.1-10.0.0.9]}]}`

// member is the pod db-0 of the StatefulSet db, which is made again under its name with another UID.
func member(uid string) *v1.Pod {
	p := asking("db-0", "any")
	p.UID = types.UID(uid)
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "db"},
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	return p
}

// next puts another pod in the place of db-0, and returns when the informers have seen it.
func (c *addressed) next(t *testing.T, uid string) *v1.Pod {
	t.Helper()
	c.API.Delete(v1.SchemeGroupVersion.WithResource("pods"), types.NamespacedName{Namespace: "default", Name: "db-0"})
	return c.add(t, member(uid))
}

// reserved returns the pods that reservations are made for, by address.
func (c *addressed) reserved() map[string]string {
	all := map[string]string{}
	for _, obj := range c.API.List(reservationsResource) {
		spec := obj.(*unstructured.Unstructured).Object["spec"].(map[string]any)
		all[spec["address"].(string)], _ = spec["podUID"].(string)
	}
	return all
}

// The pod goes when its reservation is written and it has not been told.
func TestAReservationOfAPodThatIsGoneIsTakenBack(t *testing.T) {
	t.Parallel()
	const earlier = `IPReservation ip-10-0-0-1 {address: 10.0.0.1, pool: any, podUID: before, releasePolicy: Retain, pod: {namespace: default, name: db-0, statefulSet: db}}`
	replaced := func(t *testing.T, c *addressed) { c.next(t, "second") }
	tests := map[string]struct {
		objects []string
		method  string
		change  func(t *testing.T, c *addressed)
		want    map[string]string
	}{
		"the pod is deleted": {method: http.MethodPost, change: func(t *testing.T, c *addressed) { c.DeletePod(t, "db-0") },
			want: map[string]string{}},
		"the pod is replaced": {method: http.MethodPost, change: replaced, want: map[string]string{}},
		"another scheduler gives the address to the next pod": {method: http.MethodPost,
			change: func(t *testing.T, c *addressed) {
				c.next(t, "second")
				c.apply(t, strings.Replace(earlier, "before", "second", 1))
			}, want: map[string]string{"10.0.0.1": "second"}},
		"the address was that of an earlier pod": {objects: []string{earlier}, method: http.MethodPatch, change: replaced,
			want: map[string]string{"10.0.0.1": "first"}},
		"the pod stays": {method: http.MethodPost, change: func(*testing.T, *addressed) {},
			want: map[string]string{"10.0.0.1": "first"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var c *addressed
				setup := addressSetup(t, append(test.objects, poolOfNine)...)
				setup.Through = doAfter(test.method, "ipreservations", func() { test.change(t, c) })
				c = startAddressed(t, setup)
				synctest.Wait()
				first := c.next(t, "first")
				_ = c.preBind(t, c.reserve(t, first), first)
				pass(minute)
				if diff := cmp.Diff(test.want, c.reserved()); diff != "" {
					t.Errorf("reserved (-want +got):\n%s", diff)
				}
				c.mustBind(t, c.next(t, "next"))
				if got := c.annotation("db-0", "berth.dev/ip-address"); got != "10.0.0.1" {
					t.Errorf("the next pod has %s", got)
				}
			})
		})
	}
}
