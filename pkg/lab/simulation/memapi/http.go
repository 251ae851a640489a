package memapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// RESTConfig returns a configuration whose clients talk to this server. It sets no rate limit.
func (s *Server) RESTConfig() *rest.Config {
	return &rest.Config{Host: "http://memapi.invalid", Transport: s, QPS: -1}
}

// target is what the path of a request names.
type target struct {
	gvr         schema.GroupVersionResource
	key         types.NamespacedName
	subresource string
}

func parsePath(path string) (target, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var t target
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.gvr.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.gvr.Group, t.gvr.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return t, false
	}
	if parts[0] == "namespaces" && len(parts) >= 3 {
		t.key.Namespace, parts = parts[1], parts[2:]
	}
	t.gvr.Resource = parts[0]
	if len(parts) > 1 {
		t.key.Name = parts[1]
	}
	if len(parts) > 2 {
		t.subresource = strings.Join(parts[2:], "/")
	}
	return t, true
}

// RoundTrip implements http.RoundTripper.
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	t, ok := parsePath(req.URL.Path)
	if !ok {
		return s.discover(req), nil
	}
	if req.Method == http.MethodGet {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.read(req, t), nil
	}
	w := &pendingWrite{req: req, target: t, body: body, done: make(chan *http.Response, 1)}
	if s.Network != nil {
		return s.throughNetwork(w)
	}
	return s.commit(w)
}

func (s *Server) read(req *http.Request, t target) *http.Response {
	tab, err := s.table(t.gvr)
	if err != nil {
		return failure(req, err)
	}
	info := serializerFor(req.Header, tab.kind)
	if t.key.Name != "" {
		obj, ok := tab.objects[t.key]
		if !ok {
			return failure(req, apierrors.NewNotFound(t.gvr.GroupResource(), t.key.Name))
		}
		return success(req, http.StatusOK, info, obj)
	}
	query := req.URL.Query()
	match, err := newSelector(query.Get("labelSelector"), query.Get("fieldSelector"))
	if err != nil {
		return failure(req, err)
	}
	if query.Get("watch") == "true" || query.Get("watch") == "1" {
		// A streaming list is refused, as by a server without the feature: the client would collect the objects in a map and
		// pass them on in random order.
		if query.Get("sendInitialEvents") == "true" {
			return failure(req, errInvalid(tab.kind, "sendInitialEvents is not supported"))
		}
		return s.watch(req, t, tab, match, info)
	}
	encoded, err := encodeList(info, tab.kind, tab.sorted(t.key.Namespace, match), strconv.FormatInt(s.version, 10))
	if err != nil {
		return failure(req, err)
	}
	return respond(req, http.StatusOK, info.MediaType, encoded)
}

// watch opens a watch. A client that asks for an older version would miss the events since then, so it has to list
// again, unless the history has them. That includes version 0, the version of a list of an empty server.
func (s *Server) watch(req *http.Request, t target, tab *table, match selector,
	info runtime.SerializerInfo) *http.Response {
	from := req.URL.Query().Get("resourceVersion")
	var missed []Event
	if from != "" && from != strconv.FormatInt(s.version, 10) {
		v, err := strconv.ParseInt(from, 10, 64)
		known := err == nil && tab.version <= v
		if err == nil && !known && s.Rules != nil && v > 0 {
			missed, known = tab.since(v)
		}
		if !known {
			return failure(req, apierrors.NewResourceExpired("version "+from+" is not the current one"))
		}
	}
	w := &watcher{namespace: t.key.Namespace, match: match, info: info, server: s, table: tab}
	w.cond.L = &w.mu
	for _, e := range missed {
		w.send(e)
	}
	tab.watchers = append(tab.watchers, w)
	context.AfterFunc(req.Context(), func() { _ = w.Close() })
	mediaType := info.MediaType
	if mediaType == runtime.ContentTypeProtobuf {
		mediaType += ";stream=watch"
	}
	response := respond(req, http.StatusOK, mediaType, nil)
	response.Body, response.ContentLength = w, -1
	return response
}

func (s *Server) release(closed *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := closed.table
	t.watchers = slices.DeleteFunc(t.watchers, func(w *watcher) bool { return w == closed })
}

func success(req *http.Request, code int, info runtime.SerializerInfo, obj runtime.Object) *http.Response {
	encoded, err := encode(info, obj)
	if err != nil {
		return failure(req, err)
	}
	return respond(req, code, info.MediaType, encoded)
}

func failure(req *http.Request, err error) *http.Response {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
		Reason: metav1.StatusReasonInternalError, Message: err.Error()}
	var withStatus apierrors.APIStatus
	if errors.As(err, &withStatus) {
		status = withStatus.Status()
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	encoded, _ := json.Marshal(status)
	return respond(req, int(status.Code), runtime.ContentTypeJSON, encoded)
}
