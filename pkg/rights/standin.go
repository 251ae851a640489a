package rights

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// retryAfter is how soon a right that was granted is noticed.
const retryAfter = 10 * time.Second

// StandIn lets a scheduler run without the right to read some kinds. An informer that may not list its kind is never in
// sync, and a scheduler waits for all its informers: without the right that one plugin needs, no pod would be
// scheduled. So kinds that are not vital are empty ones to the informers while they may not be read, and are filled
// within ten seconds when the right is granted. A right that is withdrawn later leaves what is known as it is.
//
// Two rules keep an empty kind from doing harm. The devices of ResourceSlices would look free while ResourceClaims or
// DeviceTaintRules are unknown, so they are empty as well until these have been read. And no pod is deleted, which the
// scheduler does only to preempt it, while PodDisruptionBudgets may not be read.
type StandIn struct {
	logger klog.Logger
	// pause is how long a kind that may not be read is left alone before it is asked for again.
	pause time.Duration
	// vital are the kinds for which nothing stands in.
	vital map[schema.GroupResource]bool
	lost  map[schema.GroupResource]string

	mu sync.Mutex
	// away are the kinds that may not be read, granted those of them that the server lists after all, and listed those
	// that have been read.
	away, granted, listed map[schema.GroupResource]bool
}

// NewStandIn returns one that has not been asked for anything.
func NewStandIn(logger klog.Logger) *StandIn {
	s := &StandIn{
		logger: logger, pause: retryAfter, vital: map[schema.GroupResource]bool{}, lost: map[schema.GroupResource]string{},
		away: map[schema.GroupResource]bool{}, granted: map[schema.GroupResource]bool{},
		listed: map[schema.GroupResource]bool{},
	}
	for _, need := range needs() {
		kind := schema.GroupResource{Group: need.Group, Resource: need.Resource}
		s.vital[kind] = s.vital[kind] || need.Weight == Vital
		if s.lost[kind] == "" || need.Weight == Feature {
			s.lost[kind] = need.Lost
		}
	}
	return s
}

// ForInformers returns the configuration of a client that only informers use. It answers for the server where that
// refuses a list.
func (s *StandIn) ForInformers(config *restclient.Config) *restclient.Config {
	config = restclient.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &informersTransport{s, next} })
	return config
}

// Guarded returns the configuration of a client that preempts no pod while budgets may not be read.
func (s *StandIn) Guarded(config *restclient.Config) *restclient.Config {
	config = restclient.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &guardedTransport{s, next} })
	return config
}

var (
	budgets        = schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}
	resourceSlices = schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceslices"}
	// inUse are the kinds without which the devices of slices would be given out wrongly.
	inUse = []schema.GroupResource{
		{Group: "resource.k8s.io", Resource: "resourceclaims"}, {Group: "resource.k8s.io", Resource: "devicetaintrules"},
	}
)

func (s *StandIn) isAway(kind schema.GroupResource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away[kind]
}

func (s *StandIn) isGranted(kind schema.GroupResource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.granted[kind]
}

// answered notes that the server lists a kind. One that was away stays so until its informer has the objects.
func (s *StandIn) answered(kind schema.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away[kind] {
		s.granted[kind] = true
	} else {
		s.listed[kind] = true
	}
}

// read notes that a kind that was away is no longer, and refused that it may not be read; refused reports whether
// something stands in for it.
func (s *StandIn) read(kind schema.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logger.Info("Objects can be read after all", "resource", kind)
	s.listed[kind] = true
	delete(s.away, kind)
	delete(s.granted, kind)
}

func (s *StandIn) refused(kind schema.GroupResource, why string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed[kind] || s.granted[kind] {
		return false
	}
	if !s.away[kind] {
		s.logger.Error(nil, "Objects cannot be read, carrying on without them", "resource", kind, "reason", why, "effect",
			s.lost[kind])
	}
	s.away[kind] = true
	return true
}

// informersTransport carries the requests of informers.
type informersTransport struct {
	*StandIn
	next http.RoundTripper
}

// RoundTrip sends the request, and answers it itself where the kind may not be read.
func (t *informersTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	kind, ok := collection(request)
	if !ok || t.vital[kind.GroupResource()] {
		return t.next.RoundTrip(request)
	}
	query := request.URL.Query()
	watching := query.Get("watch") == "1" || query.Get("watch") == "true"
	initial := !watching || query.Get("sendInitialEvents") == "true"
	if watching && t.isAway(kind.GroupResource()) {
		if initial {
			// The end of a list that is sent as a watch cannot be seen here. Without one the informer lists.
			return refusal(request, kind, "the objects could not be read, list them"), nil
		}
		if !t.isGranted(kind.GroupResource()) {
			// The list that it would go on from is not the server's.
			return pause(request, t.pause), nil
		}
		// The informer goes on from a list of the server's, which it has taken over by now.
		response, err := t.next.RoundTrip(request)
		if err == nil {
			t.read(kind.GroupResource())
		}
		return response, err
	}
	if initial && kind.GroupResource() == resourceSlices {
		if base := t.unreadable(request, kind); base != "" {
			return t.answer(request, kind, watching, base+" may not be read"), nil
		}
	}
	response, err := t.next.RoundTrip(request)
	switch {
	case err != nil || !initial:
		return response, err
	case response.StatusCode == http.StatusOK:
		t.answered(kind.GroupResource())
	case response.StatusCode == http.StatusForbidden && !watching &&
		t.refused(kind.GroupResource(), "the API server refuses to list them"):
		_ = response.Body.Close()
		return emptyList(request, kind), nil
	}
	return response, nil
}

// unreadable returns which of the kinds that slices depend on may not be read, if any.
func (t *informersTransport) unreadable(request *http.Request, kind schema.GroupVersionResource) string {
	for _, base := range inUse {
		t.mu.Lock()
		away, listed := t.away[base], t.listed[base]
		t.mu.Unlock()
		if away {
			return base.String()
		}
		if listed {
			continue
		}
		probe := request.Clone(request.Context())
		probe.URL.Path = strings.TrimSuffix(request.URL.Path, kind.Resource) + base.Resource
		probe.URL.RawQuery = url.Values{"limit": {"1"}}.Encode()
		response, err := t.next.RoundTrip(probe)
		if err != nil {
			continue // the request for the slices will fail as well
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if response.StatusCode == http.StatusForbidden {
			return base.String()
		}
	}
	return ""
}

// answer stands in for a kind that could be read and must not be; a watch that is to begin with a list is refused, so
// that the informer lists.
func (t *informersTransport) answer(request *http.Request, kind schema.GroupVersionResource, watching bool,
	why string) *http.Response {
	if watching || !t.refused(kind.GroupResource(), why) {
		return refusal(request, kind, why)
	}
	return emptyList(request, kind)
}

// guardedTransport carries the scheduler's other requests.
type guardedTransport struct {
	*StandIn
	next http.RoundTripper
}

// RoundTrip sends the request if it may be sent.
func (t *guardedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodDelete && t.isAway(budgets) && deletesPod(request.URL.Path) {
		pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		return refusal(request, pods, "no pod is preempted while the scheduler may not read "+budgets.String()), nil
	}
	return t.next.RoundTrip(request)
}

func deletesPod(path string) bool {
	_, rest, found := strings.Cut(path, "/api/v1/namespaces/")
	parts := strings.Split(rest, "/")
	return found && len(parts) == 3 && parts[1] == "pods"
}

// collection returns the kind, if a request reads all of its objects in the cluster.
func collection(request *http.Request) (schema.GroupVersionResource, bool) {
	if request.Method != http.MethodGet {
		return schema.GroupVersionResource{}, false
	}
	if _, rest, found := strings.Cut(request.URL.Path, "/apis/"); found {
		if parts := strings.Split(rest, "/"); len(parts) == 3 {
			return schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}, true
		}
		return schema.GroupVersionResource{}, false
	}
	_, resource, found := strings.Cut(request.URL.Path, "/api/v1/")
	return schema.GroupVersionResource{Version: "v1", Resource: resource}, found && !strings.Contains(resource, "/")
}

// emptyList answers with a list of no objects. A kind that the client does not know keeps the server's refusal.
func emptyList(request *http.Request, kind schema.GroupVersionResource) *http.Response {
	for name := range scheme.Scheme.KnownTypes(kind.GroupVersion()) {
		if plural, _ := meta.UnsafeGuessKindToResource(kind.GroupVersion().WithKind(name)); plural != kind {
			continue
		}
		body := fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"0"},"items":[]}`, name+"List",
			kind.GroupVersion().String())
		return respond(request, http.StatusOK, io.NopCloser(strings.NewReader(body)))
	}
	return refusal(request, kind, "the kind is not known")
}

func refusal(request *http.Request, kind schema.GroupVersionResource, why string) *http.Response {
	status := apierrors.NewForbidden(kind.GroupResource(), "", fmt.Errorf("%s", why)).Status()
	status.Kind, status.APIVersion = "Status", "v1"
	return respond(request, http.StatusForbidden, io.NopCloser(strings.NewReader(encode(status))))
}

// pause answers with a watch that has no events and ends after a while, so that the informer lists again.
func pause(request *http.Request, duration time.Duration) *http.Response {
	reader, writer := io.Pipe()
	ctx, cancel := context.WithTimeout(request.Context(), duration)
	context.AfterFunc(ctx, func() {
		defer cancel()
		expired := apierrors.NewResourceExpired("the objects could not be read").Status()
		expired.Kind, expired.APIVersion = "Status", "v1"
		_, _ = writer.Write([]byte(`{"type":"ERROR","object":` + encode(expired) +
			"}\n")) // fails where the other side has stopped reading
		_ = writer.Close()
	})
	return respond(request, http.StatusOK, &pausedBody{reader, cancel})
}

// pausedBody ends the pause when the informer stops.
type pausedBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close ends the watch.
func (b *pausedBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

func respond(request *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: http.Header{"Content-Type": []string{"application/json"}}, Body: body, ContentLength: -1,
	}
}

func encode(status metav1.Status) string {
	data, err := json.Marshal(status)
	if err != nil {
		return `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`
	}
	return string(data)
}
