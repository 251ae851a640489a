package evictor

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/evictor/notices"
	"berth.dev/berth/pkg/members"
	"berth.dev/berth/pkg/simulation/memapi"
	"berth.dev/berth/pkg/workview"
)

// lifecycleAPI is an API server that serves the group of EvictionRequests from a time on, and counts what is asked of
// the group.
type lifecycleAPI struct {
	*memapi.Server
	from           time.Time
	asked, written atomic.Int32
}

func (a *lifecycleAPI) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.Contains(req.URL.Path, lifecyclev1alpha1.GroupName) {
		return a.Server.RoundTrip(req)
	}
	a.asked.Add(1)
	if req.Method != http.MethodGet {
		a.written.Add(1)
	}
	if time.Now().Before(a.from) {
		return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: req}, nil
	}
	return a.Server.RoundTrip(req)
}

// told is a pod with responders that has notice.
func told(change func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "worker", UID: "1-2"},
		Spec: v1.PodSpec{NodeName: "n",
			EvictionResponders: []v1.EvictionResponder{{Name: "example.com/saver", Priority: ptr.To[int32](1000)}}},
		Status: v1.PodStatus{Conditions: []v1.PodCondition{{Type: workview.EvictionNotice, Status: v1.ConditionTrue,
			Message: "gang a/b", LastTransitionTime: metav1.Now()}}}}
	if change != nil {
		change(pod)
	}
	return pod
}

func requestOf(name, requester string) *lifecyclev1alpha1.EvictionRequest {
	return &lifecyclev1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name},
		Spec: lifecyclev1alpha1.EvictionRequestSpec{Requester: requester,
			Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
			Target: lifecyclev1alpha1.EvictionRequestTarget{Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: "worker",
				UID: "1-2"}}}}
}

// keeps returns a notifier that has seen the pod, and a client, on the API, which has the pod and these requests.
func keeps(t *testing.T, api *lifecycleAPI, pod *v1.Pod,
	there ...*lifecyclev1alpha1.EvictionRequest) (*notices.Notifier, kubernetes.Interface) {
	t.Helper()
	if err := api.Create(pod.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	for _, request := range there {
		if err := api.Create(request); err != nil {
			t.Fatal(err)
		}
	}
	config := api.RESTConfig()
	config.Transport = api
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := pods.Add(pod); err != nil {
		t.Fatal(err)
	}
	n := &notices.Notifier{Members: &members.Directory{Lister: corelisters.NewPodLister(pods)},
		Leads: func() bool { return true }}
	// The context ends before the test does, and what runs with it.
	n.WatchRequests(t.Context(), client, kubeinformers.NewSharedInformerFactory(client, 0))
	n.See(pod)
	return n, client
}

func TestWhichEvictionRequestsThereAre(t *testing.T) {
	t.Parallel()
	own := func() *lifecyclev1alpha1.EvictionRequest {
		return requestOf("berth-scheduler-1-2", notices.Requester)
	}
	withdrawn := func(pod *v1.Pod) { pod.Status.Conditions[0].Status = v1.ConditionFalse }
	for name, tc := range map[string]struct {
		pod    func(*v1.Pod)
		there  []*lifecyclev1alpha1.EvictionRequest
		served time.Duration
		idle   bool
		want   []string
		// silent is set if the API is not asked for the kind at all, and writes is how often it is written.
		silent bool
		writes int32
	}{
		"a pod with notice and responders has one": {want: []string{"berth-scheduler-1-2"}, writes: 1},
		"a pod without responders has none, and the kind is not asked for": {
			pod: func(pod *v1.Pod) { pod.Spec.EvictionResponders = nil }, silent: true},
		"a pod of a native group has none": {
			pod:    func(pod *v1.Pod) { pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("g")} },
			silent: true},
		"a pod that was never told has none": {pod: func(pod *v1.Pod) { pod.Status.Conditions = nil }, silent: true},
		"that of an earlier scheduler is kept": {
			there: []*lifecyclev1alpha1.EvictionRequest{own()}, want: []string{"berth-scheduler-1-2"}},
		"that of an earlier scheduler goes if the notice was withdrawn": {
			pod: withdrawn, there: []*lifecyclev1alpha1.EvictionRequest{own()}, writes: 1},
		"that of a pod that is gone goes": {
			pod:   func(pod *v1.Pod) { pod.UID = "3-4" },
			there: []*lifecyclev1alpha1.EvictionRequest{own()}, want: []string{"berth-scheduler-3-4"}, writes: 2},
		"that of a pod that terminates stays": {
			pod:   func(pod *v1.Pod) { pod.DeletionTimestamp = ptr.To(metav1.Now()) },
			there: []*lifecyclev1alpha1.EvictionRequest{own()}, want: []string{"berth-scheduler-1-2"}},
		"a pod that terminates gets none": {
			pod: func(pod *v1.Pod) { pod.DeletionTimestamp = ptr.To(metav1.Now()) }},
		"those of others are left alone": {
			pod: withdrawn, there: []*lifecyclev1alpha1.EvictionRequest{
				requestOf("drain", notices.Requester), requestOf("berth-scheduler-1-2", "example.com/drainer")},
			want: []string{"berth-scheduler-1-2", "drain"}},
		"a scheduler that does not lead writes none": {idle: true},
		"nothing is written where it is not served":  {served: time.Hour},
		"it is made when the API begins to serve them": {served: 8 * time.Second, want: []string{"berth-scheduler-1-2"},
			writes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := &lifecycleAPI{Server: memapi.New(), from: time.Now().Add(tc.served)}
				n, client := keeps(t, api, told(tc.pod), tc.there...)
				n.Leads = func() bool { return !tc.idle }
				for range 25 {
					for range 3 { // before the informer has heard of the first one's writes
						n.KeepRequests(time.Now())
					}
					time.Sleep(time.Second) //nolint:forbidigo // virtual time
				}
				list, err := client.LifecycleV1alpha1().EvictionRequests("a").List(t.Context(), metav1.ListOptions{})
				if tc.served == time.Hour {
					list = &lifecyclev1alpha1.EvictionRequestList{}
				} else if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, request := range list.Items {
					got = append(got, request.Name)
				}
				slices.Sort(got)
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("EvictionRequests (-want +got):\n%s", diff)
				}
				// The list above asks once.
				if silent := api.asked.Load() == 1; silent != tc.silent || api.written.Load() != tc.writes {
					t.Errorf("the API was asked %d times and written %d times", api.asked.Load()-1, api.written.Load())
				}
			})
		})
	}
}

func TestAnEvictionRequestNamesItsPodAndGoesWithIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &lifecycleAPI{Server: memapi.New()}
		n, client := keeps(t, api, told(nil))
		synctest.Wait()
		n.KeepRequests(time.Now())
		synctest.Wait()
		got, err := client.LifecycleV1alpha1().EvictionRequests("a").Get(t.Context(), "berth-scheduler-1-2",
			metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(requestOf("", "berth.dev/scheduler").Spec, got.Spec); diff != "" {
			t.Errorf("spec (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "worker", UID: "1-2"}},
			got.OwnerReferences); diff != "" {
			t.Errorf("owners (-want +got):\n%s", diff)
		}
	})
}
