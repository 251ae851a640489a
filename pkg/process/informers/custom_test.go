package informers

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// longestBackoff is more than the longest pause of a reflector after errors: 30 s, and as much again by chance.
const longestBackoff = 70 * time.Second

var podGroups = CustomKind{
	Resource: schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups"),
	Object:   &schedulingv1alpha1.PodGroup{},
	List:     &schedulingv1alpha1.PodGroupList{},
	Reader:   "Test",
	Unread:   "nothing happens",
}

// The handler of errors that limits their rate keeps the time of the last one for the whole process, and each bubble of
// virtual time has another time.
func init() { utilruntime.ErrorHandlers = nil } //nolint:reassign // there is no other way

// server is an API server in memory whose answers about PodGroups a test may replace.
type server struct {
	*memapi.Server
	mu      sync.Mutex
	fail    *answer
	watches []io.Closer
}

func (s *server) answer(fail *answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	fail := s.fail
	s.mu.Unlock()
	if fail != nil && strings.Contains(req.URL.Path, "podgroups") {
		if fail.err != nil {
			return nil, fail.err
		}
		return &http.Response{StatusCode: fail.code, Header: http.Header{"Content-Type": []string{"application/json"}},
			Body: io.NopCloser(strings.NewReader(fail.body))}, nil
	}
	response, err := s.Server.RoundTrip(req)
	if err == nil && req.URL.Query().Get("watch") != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watches = append(s.watches, response.Body)
	}
	return response, err
}

// endWatches ends all watches, as a server does every few minutes.
func (s *server) endWatches() {
	s.mu.Lock()
	watches := s.watches
	s.watches = nil
	s.mu.Unlock()
	for _, w := range watches {
		_ = w.Close()
	}
}

func (s *server) config() *restclient.Config {
	config := s.RESTConfig()
	config.Transport = s
	return config
}

func (s *server) create(t *testing.T, name string) {
	t.Helper()
	group := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1",
		"kind":     "PodGroup",
		"metadata": map[string]any{"namespace": "default", "name": name}, "spec": map[string]any{"minMember": int64(2)}}}
	require.NoError(t, s.Create(group))
}

func (s *server) remove(name string) {
	s.Delete(podGroups.Resource, types.NamespacedName{Namespace: "default", Name: name})
}

// answer is what a server says, or why it says nothing.
type answer struct {
	code int
	body string
	err  error
}

// status is an answer of the server that is an error.
func status(code int, reason metav1.StatusReason) *answer {
	return &answer{code: code, body: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + string(reason) + `"}`}
}

func names(informer cache.SharedIndexInformer) []string {
	var names []string
	for _, obj := range informer.GetStore().List() {
		names = append(names, obj.(*schedulingv1alpha1.PodGroup).Name)
	}
	slices.Sort(names)
	return names
}

// inform runs the informer on the server in a bubble of virtual time, as a scheduler would.
func inform(t *testing.T, s *server) cache.SharedIndexInformer {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.config())
	require.NoError(t, err)
	factory := informers.NewSharedInformerFactory(client, 0)
	informer, _, err := Custom(factory, s.config(), podGroups)
	require.NoError(t, err)
	factory.StartWithContext(t.Context())
	t.Cleanup(factory.Shutdown)
	return informer
}

func TestAKindThatCannotBeReadIsEmptyUntilItCan(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fail *answer
		// syncs is when the informer is in sync at the latest; zero if it waits for the server.
		syncs time.Duration
	}{
		"a CRD that is not installed": {status(http.StatusNotFound, metav1.StatusReasonNotFound), time.Second},
		"a right that is missing":     {status(http.StatusForbidden, metav1.StatusReasonForbidden), time.Second},
		"a server with an error": {status(http.StatusInternalServerError, metav1.StatusReasonInternalError),
			customPatience + longestBackoff},
		"a storage that is not ready": {status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests),
			customPatience + longestBackoff},
		"an object that cannot be read":   {&answer{code: http.StatusOK, body: `{"kind":"PodGroupList","apiVersion":"scheduling.x-k8s.io/v1alpha1","items":[{"spec":{"minMember":"two"}}]}`}, customPatience + longestBackoff},
		"an answer that is not an object": {&answer{code: http.StatusOK, body: `<html>`}, customPatience + longestBackoff},
		"a server that does not answer":   {&answer{err: errors.New("connection refused")}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{Server: memapi.New()}
				s.Register(podGroups.Resource, "PodGroup", true)
				s.create(t, "a")
				s.answer(test.fail)
				informer := inform(t, s)
				pass(test.syncs)
				if test.syncs == 0 {
					pass(time.Hour)
				}
				if synced, want := informer.HasSynced(), test.syncs > 0; synced != want {
					t.Fatalf("in sync is %v, want %v", synced, want)
				}
				if test.syncs > 0 && len(names(informer)) > 0 {
					t.Errorf("objects that cannot be read are %v", names(informer))
				}
				s.answer(nil)
				pass(customRetry + longestBackoff)
				if diff := cmp.Diff([]string{"a"}, names(informer)); diff != "" || !informer.HasSynced() {
					t.Errorf("objects once they can be read (-want +got):\n%s", diff)
				}
				s.create(t, "b")
				pass(time.Second)
				assert.Equal(t, "objects after a creation", []string{"a", "b"}, names(informer))
			})
		})
	}
}

func TestWhatWasReadStaysUntilItIsDeleted(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fail *answer
		want []string
	}{
		"a right that is withdrawn": {status(http.StatusForbidden, metav1.StatusReasonForbidden), []string{"a"}},
		"a server with an error": {status(http.StatusInternalServerError, metav1.StatusReasonInternalError),
			[]string{"a"}},
		"a CRD that is deleted": {status(http.StatusNotFound, metav1.StatusReasonNotFound), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{Server: memapi.New()}
				s.Register(podGroups.Resource, "PodGroup", true)
				s.create(t, "a")
				informer := inform(t, s)
				pass(time.Second)
				s.answer(test.fail)
				s.endWatches()
				pass(5 * time.Minute)
				assert.Equal(t, "objects while they cannot be read", test.want, names(informer))
				s.create(t, "b")
				s.remove("a")
				s.answer(nil)
				pass(customRetry + longestBackoff)
				assert.Equal(t, "objects afterwards", []string{"b"}, names(informer))
			})
		})
	}
}

// pass lets virtual time pass and everything that is due happen.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual time
	synctest.Wait()
}
