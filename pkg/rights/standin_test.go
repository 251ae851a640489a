package rights

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"berth.dev/berth/test/harness/await"
)

// deniedServer is an API server with one object of each kind, that refuses some kinds and has no watches.
type deniedServer struct {
	*httptest.Server
	mu     sync.Mutex
	denied map[string]bool
	// deleted are the paths of deletions that reached it.
	deleted []string
	// granted are the kinds that were refused until grant; watched and streamed are those whose watches have begun
	// since, from a list or with the objects themselves.
	granted, watched, streamed map[string]bool
	// early are the granted kinds that an informer had not taken over when slices were listed.
	early []string
}

func newDeniedServer(t *testing.T, denied ...string) *deniedServer {
	t.Helper()
	s := &deniedServer{denied: map[string]bool{}, granted: map[string]bool{}, watched: map[string]bool{},
		streamed: map[string]bool{}}
	for _, resource := range denied {
		s.denied[resource] = true
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

var listKinds = map[string]string{
	"services": "ServiceList", "nodes": "NodeList", "resourceclaims": "ResourceClaimList",
	"resourceslices":   "ResourceSliceList",
	"devicetaintrules": "DeviceTaintRuleList", "poddisruptionbudgets": "PodDisruptionBudgetList",
}

func (s *deniedServer) grant() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.granted, s.denied = s.denied, s.granted
	clear(s.watched)
	clear(s.streamed)
}

func (s *deniedServer) serve(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	resource, version := parts[len(parts)-1], strings.Join(parts[2:len(parts)-1], "/")
	query := r.URL.Query()
	s.mu.Lock()
	denied := s.denied[resource]
	switch {
	case query.Get("sendInitialEvents") != "":
		s.streamed[resource] = true
	case query.Get("watch") != "":
		s.watched[resource] = true
	case resource == "resourceslices":
		for kind := range s.granted {
			if !s.watched[kind] {
				s.early = append(s.early, kind)
			}
		}
	}
	if r.Method == http.MethodDelete {
		s.deleted = append(s.deleted, r.URL.Path)
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case denied || query.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Reason: metav1.StatusReasonForbidden, Code: 403})
	case query.Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		_, _ = w.Write([]byte(`{"kind":"` + listKinds[resource] + `","apiVersion":"` + version + `","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"one","namespace":"ns"}}]}`))
	}
}

// newStandIn returns one that asks again soon.
func newStandIn() *StandIn {
	standIn := NewStandIn(klog.Background())
	standIn.pause = 100 * time.Millisecond
	return standIn
}

// inform starts an informer for the kind on the server, with the stand-in between them.
func inform(t *testing.T, standIn *StandIn, server *deniedServer,
	kinds ...schema.GroupVersionResource) []cache.SharedIndexInformer {
	t.Helper()
	client, err := kubernetes.NewForConfig(standIn.ForInformers(&restclient.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	var all []cache.SharedIndexInformer
	for _, kind := range kinds {
		generic, err := factory.ForResource(kind)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, generic.Informer())
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	return all
}

var (
	claims  = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}
	taints  = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "devicetaintrules"}
	slices1 = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}
	service = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	nodes   = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

func TestAKindThatMayNotBeReadIsEmptyAndFilledWhenItMay(t *testing.T) {
	t.Parallel()
	server := newDeniedServer(t, "services")
	informer := inform(t, newStandIn(), server, service)[0]
	await.Until(t, "the informer to be in sync", informer.HasSynced)
	if n := len(informer.GetStore().List()); n != 0 {
		t.Fatalf("%d objects of a kind that may not be read", n)
	}
	server.grant()
	await.Until(t, "the object", func() bool { return len(informer.GetStore().List()) == 1 })
}

func TestNothingStandsInForAKindThatIsVital(t *testing.T) {
	t.Parallel()
	server := newDeniedServer(t, "nodes")
	informer := inform(t, newStandIn(), server, nodes)[0]
	server.grant()
	await.Until(t, "the object", informer.HasSynced)
	if n := len(informer.GetStore().List()); n != 1 {
		t.Errorf("in sync with %d objects, want 1", n)
	}
}

// A device that is in use would look free.
func TestDevicesAreUnknownWhileTheirUseIs(t *testing.T) {
	t.Parallel()
	for _, denied := range []string{"resourceclaims", "devicetaintrules"} {
		t.Run(denied, func(t *testing.T) {
			t.Parallel()
			server := newDeniedServer(t, denied)
			all := inform(t, newStandIn(), server, slices1, claims, taints)
			for _, informer := range all {
				await.Until(t, "the informer to be in sync", informer.HasSynced)
			}
			if n := len(all[0].GetStore().List()); n != 0 {
				t.Fatalf("%d slices are known while %s may not be read", n, denied)
			}
			server.grant()
			for _, informer := range all {
				await.Until(t, "the object", func() bool { return len(informer.GetStore().List()) == 1 })
			}
			server.mu.Lock()
			defer server.mu.Unlock()
			if len(server.early) > 0 {
				t.Errorf("slices are read before the informer has %q", server.early)
			}
			// The end of such a list cannot be seen from outside.
			if server.streamed[denied] {
				t.Errorf("%s is read as a watch that begins with the objects", denied)
			}
		})
	}
}

func TestNoPodIsDeletedWhileBudgetsMayNotBeRead(t *testing.T) {
	t.Parallel()
	server := newDeniedServer(t, "poddisruptionbudgets")
	standIn := newStandIn()
	client, err := kubernetes.NewForConfig(standIn.Guarded(&restclient.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	informer := inform(t, standIn, server, schema.GroupVersionResource{Group: "policy", Version: "v1",
		Resource: "poddisruptionbudgets"})[0]
	await.Until(t, "the informer to be in sync", informer.HasSynced)
	err = client.CoreV1().Pods("ns").Delete(t.Context(), "p", metav1.DeleteOptions{})
	if err == nil || !strings.Contains(err.Error(),
		"no pod is preempted while the scheduler may not read poddisruptionbudgets.policy") {
		t.Errorf("deleting a pod: %v, want an error that says why not", err)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if len(server.deleted) > 0 {
		t.Errorf("deletions that reached the server: %v", server.deleted)
	}
}
