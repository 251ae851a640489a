package ipreservation

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	restclient "k8s.io/client-go/rest"

	"berth.dev/berth/pkg/apis/config"
)

const poolOfNine = `IPPool any {releasePolicy: Retain, subnets: [{ranges: [10.0.0.1-10.0.0.9]}]}`

// member is the pod db-0 of the StatefulSet db, which is made again under its name with another UID.
func member(uid string) *v1.Pod {
	p := asking("db-0", "any")
	p.UID, p.Spec.SchedulerName = types.UID(uid), profile
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "db"}, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	return p
}

// next puts another pod in the place of db-0, and returns when the informers have seen it.
func (c *cluster) next(t *testing.T, uid string) *v1.Pod {
	t.Helper()
	c.api.Delete(v1.SchemeGroupVersion.WithResource("pods"), types.NamespacedName{Namespace: "default", Name: "db-0"})
	p := c.create(t, member(uid))
	synctest.Wait()
	return p
}

// reserved returns the pods that reservations are made for, by address.
func (c *cluster) reserved() map[string]string {
	all := map[string]string{}
	for _, obj := range c.api.List(reservationKind.Resource) {
		spec := obj.(*unstructured.Unstructured).Object["spec"].(map[string]any)
		all[spec["address"].(string)], _ = spec["podUID"].(string)
	}
	return all
}

// afterRequest is a transport that does something after the first request of a kind, before its client has the answer.
type afterRequest struct {
	http.RoundTripper
	method, resource string
	once             *sync.Once
	do               func()
}

func (a afterRequest) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := a.RoundTripper.RoundTrip(req)
	if req.Method == a.method && strings.Contains(req.URL.Path, "/"+a.resource) {
		a.once.Do(a.do)
	}
	return answer, err
}

// doAfter has something done after the book's first request of a kind.
func doAfter(client *restclient.RESTClient, method, resource string, do func()) {
	client.Client.Transport = afterRequest{client.Client.Transport, method, resource, &sync.Once{}, do}
}

// The plugins of PreBind run one after the other, and those before this one may wait for minutes. A pod that is replaced meanwhile
// is bound by nothing, but its binding goes on until it fails.
func TestAPodThatIsReplacedBeforePreBindLeavesNoAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, nil, &config.IPReservationArgs{}, poolOfNine)
		synctest.Wait()
		first := c.next(t, "first")
		promised := c.reserve(t, first)
		second := c.next(t, "second")
		waits := map[string]string{"": "address 10.0.0.1 is promised to an earlier pod of the same name, whose binding has not ended"}
		got, _ := c.filter(t, second)
		if diff := cmp.Diff(waits, got); diff != "" {
			t.Errorf("the second pod is refused (-want +got):\n%s", diff)
		}
		c.tried()
		if reason := c.bind(t, promised, first); !strings.Contains(reason, "reserving address 10.0.0.1 for pod default/db-0: the pod was deleted meanwhile") {
			t.Errorf("PreBind of the first pod says %q", reason)
		}
		if diff := cmp.Diff([]string{"db-0"}, c.tried()); diff != "" {
			t.Errorf("tried again (-want +got):\n%s", diff)
		}
		if reason := c.bind(t, c.reserve(t, second), second); reason != "" {
			t.Fatal(reason)
		}
		c.land(t, second)
		if diff := cmp.Diff(map[string]string{"10.0.0.1": "second"}, c.reserved()); diff != "" {
			t.Errorf("reserved (-want +got):\n%s", diff)
		}
		third := c.next(t, "third")
		if reason := c.bind(t, c.reserve(t, third), third); reason != "" {
			t.Fatal(reason)
		}
		if diff := cmp.Diff(map[string]string{"10.0.0.1": "third"}, c.reserved()); diff != "" {
			t.Errorf("reserved (-want +got):\n%s", diff)
		}
	})
}

// The pod goes when its reservation is written and it has not been told.
func TestAReservationOfAPodThatIsGoneIsTakenBack(t *testing.T) {
	t.Parallel()
	const earlier = `IPReservation ip-10-0-0-1 {address: 10.0.0.1, pool: any, podUID: before, releasePolicy: Retain, pod: {namespace: default, statefulSet: db, ordinal: 0}}`
	replaced := func(t *testing.T, c *cluster) { c.next(t, "second") }
	tests := map[string]struct {
		objects []string
		method  string
		change  func(t *testing.T, c *cluster)
		want    map[string]string
	}{
		"the pod is deleted": {method: http.MethodPost, change: func(_ *testing.T, c *cluster) {
			c.api.Delete(v1.SchemeGroupVersion.WithResource("pods"), types.NamespacedName{Namespace: "default", Name: "db-0"})
		}, want: map[string]string{}},
		"the pod is replaced": {method: http.MethodPost, change: replaced, want: map[string]string{}},
		"another scheduler gives the address to the next pod": {method: http.MethodPost, change: func(t *testing.T, c *cluster) {
			c.next(t, "second")
			c.apply(t, strings.Replace(earlier, "before", "second", 1))
		}, want: map[string]string{"10.0.0.1": "second"}},
		"the address was that of an earlier pod": {objects: []string{earlier}, method: http.MethodPatch, change: replaced,
			want: map[string]string{"10.0.0.1": "first"}},
		"the pod stays": {method: http.MethodPost, change: func(*testing.T, *cluster) {}, want: map[string]string{"10.0.0.1": "first"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var c *cluster
				c = newClusterWith(t, nil, &config.IPReservationArgs{}, func(b *book) {
					doAfter(b.client, test.method, reservationKind.Resource.Resource, func() { test.change(t, c) })
				}, append(test.objects, poolOfNine)...)
				synctest.Wait()
				first := c.next(t, "first")
				_ = c.bind(t, c.reserve(t, first), first)
				if diff := cmp.Diff(test.want, c.reserved()); diff != "" {
					t.Errorf("reserved (-want +got):\n%s", diff)
				}
				synctest.Wait()
				if p, reason := c.plugin.book.ledger.Reserve(mustAsk(member("next")), nil); p.Address.String() != "10.0.0.1" {
					t.Errorf("the next pod is promised %s (%s)", p.Address, reason)
				}
			})
		})
	}
}

// The promise may be kept and the pod be gone before it is bound: the failure of the binding ends no promise then.
func TestAPodIsTriedAgainWhenThePromiseToItsPredecessorIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c *cluster
		c = newClusterWith(t, nil, &config.IPReservationArgs{}, func(b *book) {
			client, _ := b.handle.ClientSet().CoreV1().RESTClient().(*restclient.RESTClient)
			doAfter(client, http.MethodPatch, "pods", func() {
				if got, _ := c.filter(t, c.next(t, "second")); !strings.Contains(got[""], "promised to an earlier pod") {
					t.Errorf("the second pod is refused for %v", got)
				}
			})
		}, poolOfNine)
		synctest.Wait()
		first := c.next(t, "first")
		state := c.reserve(t, first)
		c.tried()
		if reason := c.bind(t, state, first); reason != "" {
			t.Fatal(reason)
		}
		if diff := cmp.Diff([]string{"db-0"}, c.tried()); diff != "" {
			t.Errorf("tried again (-want +got):\n%s", diff)
		}
	})
}

// Two schedulers, of which one was losing the lead, may have reserved an address each for two pods of one name.
func TestThePodGetsTheAddressThatTheLastOneRanWith(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ node, want string }{
		"of a pod that ran":           {node: onlyNode, want: "10.0.0.2"},
		"of a pod that was not bound": {want: "10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, nil, &config.IPReservationArgs{}, poolOfNine,
					`IPReservation ip-10-0-0-1 {address: 10.0.0.1, pool: any, podUID: first, releasePolicy: Retain, pod: {namespace: default, statefulSet: db, ordinal: 0}}`,
					`IPReservation ip-10-0-0-2 {address: 10.0.0.2, pool: any, podUID: second, releasePolicy: Retain, pod: {namespace: default, statefulSet: db, ordinal: 0}}`)
				synctest.Wait()
				c.plugin.book.begin()
				second := member("second")
				second.Spec.NodeName, second.Annotations["berth.dev/ip-address"] = test.node, "10.0.0.2"
				c.create(t, second)
				synctest.Wait()
				third := c.next(t, "third")
				if reason := c.bind(t, c.reserve(t, third), third); reason != "" {
					t.Fatal(reason)
				}
				if got := c.annotations("db-0")["berth.dev/ip-address"]; got != test.want {
					t.Errorf("the third pod has %s, want %s", got, test.want)
				}
			})
		})
	}
}
