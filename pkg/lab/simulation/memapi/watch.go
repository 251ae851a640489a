package memapi

import (
	"io"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// selector reports whether a request selects an object.
type selector func(runtime.Object) bool

func everything(runtime.Object) bool { return true }

func newSelector(labelSelector, fieldSelector string) (selector, error) {
	if labelSelector == "" && fieldSelector == "" {
		return everything, nil
	}
	byLabel, err := labels.Parse(labelSelector)
	if err != nil {
		return nil, errBadRequest("labelSelector: " + err.Error())
	}
	byField, err := fields.ParseSelector(fieldSelector)
	if err != nil {
		return nil, errBadRequest("fieldSelector: " + err.Error())
	}
	return func(obj runtime.Object) bool {
		m := metaOf(obj)
		if !byLabel.Matches(labels.Set(m.GetLabels())) {
			return false
		}
		if byField.Empty() {
			return true
		}
		set := fields.Set{"metadata.name": m.GetName(), "metadata.namespace": m.GetNamespace()}
		if pod, ok := obj.(*v1.Pod); ok {
			set["spec.nodeName"] = pod.Spec.NodeName
			set["spec.schedulerName"] = pod.Spec.SchedulerName
			set["status.phase"] = string(pod.Status.Phase)
		}
		return byField.Matches(set)
	}, nil
}

// frame is the part of an encoded event that has not been read, and the time at which it arrives.
type frame struct {
	rest []byte
	at   time.Time
}

// watcher is one open watch. It is also the body of the response: the client reads the encoded events from it.
type watcher struct {
	namespace string
	match     selector
	info      runtime.SerializerInfo
	server    *Server
	table     *table

	mu     sync.Mutex
	cond   sync.Cond
	queue  []frame
	closed bool
	err    error
}

// send queues an event for a selected object. A change into or out of the selection becomes an addition or a deletion.
// It never blocks: informers always read.
func (w *watcher) send(e Event) {
	if w.namespace != "" && metaOf(e.Object).GetNamespace() != w.namespace {
		return
	}
	kind := e.Type
	is := w.match(e.Object)
	was := e.Type != Added && w.match(e.Old)
	switch {
	case e.Type == Modified && is && !was:
		kind = Added
	case e.Type == Modified && !is && was:
		kind = Deleted
	case e.Type == Deleted && !was, e.Type != Deleted && !is:
		return
	}
	content, err := encodeEvent(w.info, kind, e.Object)
	var at time.Time
	if w.server.Network != nil {
		at = time.Now().Add(w.server.Network.Event())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.err = err
	} else {
		w.queue = append(w.queue, frame{content, at})
	}
	w.cond.Signal()
}

// Read implements io.Reader over the queued frames; it blocks until there is one or the watch is closed.
func (w *watcher) Read(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) == 0 && !w.closed && w.err == nil {
		w.cond.Wait()
	}
	if len(w.queue) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		return 0, io.EOF
	}
	if late := time.Until(w.queue[0].at); w.server.Network != nil && late > 0 {
		// The first frame stays the first meanwhile: only this reader removes frames.
		w.mu.Unlock()
		time.Sleep(late) //nolint:forbidigo // delays are for virtual time
		w.mu.Lock()
	}
	n := copy(p, w.queue[0].rest)
	w.queue[0].rest = w.queue[0].rest[n:]
	if len(w.queue[0].rest) == 0 {
		w.queue[0] = frame{}
		w.queue = w.queue[1:]
	}
	return n, nil
}

// Close ends the watch.
func (w *watcher) Close() error {
	w.mu.Lock()
	w.closed = true
	w.cond.Broadcast()
	w.mu.Unlock()
	w.server.release(w)
	return nil
}
