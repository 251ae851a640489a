package memapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// writeQueue holds the writes of a deferred server until they are committed.
type writeQueue struct {
	mu       sync.Mutex
	deferred bool
	pending  []*pendingWrite
	changed  chan struct{}
}

type pendingWrite struct {
	req    *http.Request
	target target
	body   []byte
	// order sorts the writes of one instant.
	order string
	done  chan *http.Response
}

// commit applies a write, or waits until CommitFirst does.
func (s *Server) commit(w *pendingWrite) (*http.Response, error) {
	q := &s.writes
	q.mu.Lock()
	if !q.deferred {
		q.mu.Unlock()
		return s.apply(w), nil
	}
	w.order = w.req.URL.Path + "\x00" + w.req.Method + "\x00" + string(w.body)
	q.pending = append(q.pending, w)
	select {
	case q.changed <- struct{}{}:
	default:
	}
	q.mu.Unlock()
	select {
	case response := <-w.done:
		return response, nil
	case <-w.req.Context().Done():
		return nil, w.req.Context().Err()
	}
}

func (s *Server) apply(w *pendingWrite) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(w.req, w.target, w.body)
}

// Defer makes later writes wait for CommitFirst.
func (s *Server) Defer() {
	s.writes.mu.Lock()
	defer s.writes.mu.Unlock()
	s.writes.deferred = true
}

// Undefer applies the waiting writes, and every later one at once.
func (s *Server) Undefer() {
	s.writes.mu.Lock()
	s.writes.deferred = false
	s.writes.mu.Unlock()
	for s.CommitFirst() {
	}
}

// Pending receives a value when a write begins to wait.
func (s *Server) Pending() <-chan struct{} { return s.writes.changed }

// CommitFirst applies the first of the waiting writes, in the order of their paths, methods and bodies, and reports
// whether there was one. The caller can wait for all effects of a write before the next one.
func (s *Server) CommitFirst() bool {
	q := &s.writes
	q.mu.Lock()
	if len(q.pending) == 0 {
		q.mu.Unlock()
		return false
	}
	first := 0
	for i := range q.pending {
		if q.pending[i].order < q.pending[first].order {
			first = i
		}
	}
	w := q.pending[first]
	q.pending = slices.Delete(q.pending, first, first+1)
	q.mu.Unlock()
	w.done <- s.apply(w) //nolint:bodyclose // the caller of the transport closes it
	return true
}

// write serves every method but GET; it is called with the lock held.
func (s *Server) write(req *http.Request, t target, body []byte) *http.Response {
	tab, err := s.table(t.gvr)
	if err != nil {
		return failure(req, err)
	}
	dryRun := req.URL.Query().Get("dryRun") != ""
	if dryRun && (req.Method != http.MethodPost || t.subresource != "") {
		return failure(req, errBadRequest("dryRun is supported for creations alone"))
	}
	info := serializerFor(req.Header, tab.kind)
	var obj runtime.Object
	code := http.StatusOK
	switch {
	case req.Method == http.MethodPost && t.subresource == "binding":
		if err := s.bind(t, body); err != nil {
			return failure(req, err)
		}
		done := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
			Code: http.StatusCreated}
		return success(req, http.StatusCreated, info, done)
	case req.Method == http.MethodPost && t.subresource == "":
		code = http.StatusCreated
		obj, err = s.post(tab, t, body, dryRun)
	case req.Method == http.MethodPut:
		obj, err = s.put(tab, t, body)
	case req.Method == http.MethodPatch:
		patchType := types.PatchType(contentType(req.Header))
		obj, err = s.rewrite(t, func(old runtime.Object) (runtime.Object, error) { return applyPatch(old, patchType, body) })
	case req.Method == http.MethodDelete:
		options, derr := decodeDelete(body, tab.kind)
		if derr != nil {
			return failure(req, derr)
		}
		if t.key.Name == "" {
			obj = &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
				Code: http.StatusOK}
			err = s.endAll(req, tab, t, options)
		} else {
			obj, err = s.end(t, options)
		}
	default:
		err = errBadRequest(req.Method + " " + req.URL.Path + " is not supported")
	}
	if err != nil {
		return failure(req, err)
	}
	return success(req, code, info, obj)
}

func (s *Server) post(tab *table, t target, body []byte, dryRun bool) (runtime.Object, error) {
	obj, err := decode(body, tab.kind)
	if err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(tab.kind.gvk)
	if tab.kind.gvk.Kind == "Event" && s.Rules == nil {
		return obj, nil // accepted and dropped: no replay reads events
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, errBadRequest(err.Error())
	}
	m.SetNamespace(t.key.Namespace)
	if s.Rules != nil {
		if obj, err = s.Rules.Create(t.gvr, obj); err != nil {
			return nil, err //nolint:wrapcheck // it is the answer
		}
	}
	if dryRun {
		return obj, nil
	}
	return s.create(t.gvr, obj)
}

func (s *Server) put(tab *table, t target, body []byte) (runtime.Object, error) {
	obj, err := decode(body, tab.kind)
	if err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(tab.kind.gvk)
	is, err := meta.Accessor(obj)
	if err != nil {
		return nil, errBadRequest(err.Error())
	}
	return s.rewrite(t, func(old runtime.Object) (runtime.Object, error) {
		is.SetUID(metaOf(old).GetUID())
		return obj, nil
	})
}

// rewrite changes the object that the request names, by the rules if there are any.
func (s *Server) rewrite(t target, change func(old runtime.Object) (runtime.Object, error)) (runtime.Object, error) {
	obj, err := s.update(t.gvr, t.key, func(old runtime.Object) (runtime.Object, error) {
		obj, err := change(old)
		if err == nil {
			err = checkVersion(t, old, obj)
		}
		if err != nil || s.Rules == nil {
			return obj, err
		}
		if obj, err = s.Rules.Update(t.gvr, t.subresource, obj, old); err == nil && equality.Semantic.DeepEqual(obj, old) {
			err = errUnchanged
		}
		return obj, err
	})
	switch {
	case errors.Is(err, errUnchanged):
		return s.tables[t.gvr].objects[t.key], nil
	case err != nil || s.Rules == nil:
		return obj, err
	}
	return s.endIfDone(t.gvr, t.key, obj)
}

// errUnchanged ends a write that does not change the object, which gets no new version and no event.
var errUnchanged = errors.New("unchanged")

// checkVersion refuses a write with a version that is not the stored one. A write without a version is accepted.
func checkVersion(t target, old, written runtime.Object) error {
	version := metaOf(written).GetResourceVersion()
	if version != "" && version != metaOf(old).GetResourceVersion() {
		return errConflict(t.gvr, t.key.Name,
			"the object has been modified; please apply your changes to the latest version and try again")
	}
	return nil
}

func (s *Server) bind(t target, body []byte) error {
	decoded, err := decode(body, kind{gvk: v1.SchemeGroupVersion.WithKind("Binding")})
	if err != nil {
		return err
	}
	binding, ok := decoded.(*v1.Binding)
	if !ok || binding.Target.Name == "" {
		return errBadRequest("a binding needs a target node")
	}
	_, err = s.update(t.gvr, t.key, func(old runtime.Object) (runtime.Object, error) {
		pod, ok := old.DeepCopyObject().(*v1.Pod)
		if !ok {
			return nil, errBadRequest("only a pod can be bound")
		}
		if binding.UID != "" && binding.UID != pod.UID {
			return nil, errConflict(t.gvr, t.key.Name, "the UID of the binding is not that of the pod")
		}
		if pod.Spec.NodeName != "" {
			return nil, errConflict(t.gvr, t.key.Name, "pod is already assigned to node "+pod.Spec.NodeName)
		}
		if pod.DeletionTimestamp != nil {
			return nil, errConflict(t.gvr, t.key.Name, "pod is being deleted, cannot be assigned to a host")
		}
		if len(pod.Spec.SchedulingGates) > 0 {
			return nil, errConflict(t.gvr, t.key.Name, "pod has non-empty scheduling gates")
		}
		pod.Spec.NodeName = binding.Target.Name
		for key, value := range binding.Annotations {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value)
		}
		pod.Status.NominatedNodeName = ""
		setScheduled(pod)
		if s.StartPods {
			pod.Status.Phase, pod.Status.StartTime = v1.PodRunning, ptr.To(metav1.Now())
		}
		return pod, nil
	})
	return err
}

// setScheduled sets the condition PodScheduled.
func setScheduled(pod *v1.Pod) {
	scheduled := v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.Now()}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1.PodScheduled {
			scheduled.LastProbeTime, scheduled.ObservedGeneration = c.LastProbeTime, c.ObservedGeneration
			*c = scheduled
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, scheduled)
}

// end deletes an object at once, or marks a pod with a grace period.
func (s *Server) end(t target, options *metav1.DeleteOptions) (runtime.Object, error) {
	if s.Rules != nil {
		return s.endByRules(t.gvr, t.key, options)
	}
	tab, err := s.table(t.gvr)
	if err != nil {
		return nil, err
	}
	pod, ok := tab.objects[t.key].(*v1.Pod)
	now := options.GracePeriodSeconds != nil && *options.GracePeriodSeconds == 0
	if !s.Graceful || !ok || now || pod.Spec.NodeName == "" || ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0) == 0 ||
		pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		return s.remove(t.gvr, t.key, options.Preconditions)
	}
	if err := checkPreconditions(options.Preconditions, t.gvr, pod); err != nil {
		return nil, err
	}
	if pod.DeletionTimestamp != nil {
		return pod, nil
	}
	return s.update(t.gvr, t.key, func(runtime.Object) (runtime.Object, error) {
		seconds := *pod.Spec.TerminationGracePeriodSeconds
		if options.GracePeriodSeconds != nil {
			seconds = *options.GracePeriodSeconds
		}
		leaving := pod.DeepCopy()
		leaving.DeletionGracePeriodSeconds = &seconds
		leaving.DeletionTimestamp = ptr.To(metav1.NewTime(time.Now().Add(time.Duration(seconds) * time.Second)))
		return leaving, nil
	})
}

// decodeDelete returns the options of a deletion.
func decodeDelete(body []byte, k kind) (*metav1.DeleteOptions, error) {
	if len(body) == 0 {
		return &metav1.DeleteOptions{}, nil
	}
	if k.custom {
		// Clients use the group of the resource, in which no scheme has DeleteOptions.
		var options metav1.DeleteOptions
		if err := json.Unmarshal(body, &options); err != nil {
			return nil, errBadRequest("the body cannot be decoded: " + err.Error())
		}
		return &options, nil
	}
	obj, err := decode(body, kind{gvk: metav1.SchemeGroupVersion.WithKind("DeleteOptions")})
	if err != nil {
		return nil, err
	}
	options, ok := obj.(*metav1.DeleteOptions)
	if !ok {
		return nil, errBadRequest(fmt.Sprintf("the body is a %T", obj))
	}
	return options, nil
}
