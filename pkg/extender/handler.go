package extender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// bodyBytes is the size of the largest request that is read: a pod, and the names of 100,000 nodes.
const bodyBytes = 8 << 20

// handler serves the verbs of the protocol. An answer may take that long.
//
// A request that cannot be read is answered by an HTTP status. What the extender cannot do is an error within the
// answer where the protocol has room for one: the scheduler shows that to the user, and of a status only the number.
func (e *Extender) handler(within time.Duration) http.Handler {
	mux := http.NewServeMux()
	for verb, answer := range map[string]answer{"filter": e.answerFilter, "prioritize": e.answerPrioritize} {
		mux.HandleFunc("POST /"+verb, func(w http.ResponseWriter, r *http.Request) {
			started := time.Now()
			// The context ends as well when the caller is gone.
			ctx, cancel := context.WithTimeout(r.Context(), within)
			defer cancel()
			requests.WithLabelValues(verb, serve(w, r.WithContext(ctx), answer)).Inc()
			durations.WithLabelValues(verb).Observe(time.Since(started).Seconds())
		})
	}
	return http.MaxBytesHandler(mux, bodyBytes)
}

// answer answers a request. A result beside an error is an answer that holds the error.
type answer func(ctx context.Context, args *extenderv1.ExtenderArgs) (result any, err error)

// serve reads a request and writes the answer. It returns the result of the request for the metrics.
func serve(w http.ResponseWriter, r *http.Request, answer answer) (outcome string) {
	logger := klog.FromContext(r.Context()).WithValues("path", r.URL.Path, "from", r.RemoteAddr)
	args, err := decodeArgs(r.Body)
	if err != nil {
		logger.Info("A request cannot be read", "err", err)
		status := http.StatusBadRequest
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, err.Error(), status)
		return "bad_request"
	}
	outcome = "done"
	result, err := answer(r.Context(), args)
	if err != nil {
		outcome = "failed"
		logger.Info("A request failed", "err", err)
	}
	if result == nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return outcome
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(result); err != nil {
		logger.V(2).Info("Writing an answer failed", "err", err)
	}
	return outcome
}

// decodeArgs reads one JSON value and nothing after it.
func decodeArgs(body io.Reader) (*extenderv1.ExtenderArgs, error) {
	decoder, args := json.NewDecoder(body), &extenderv1.ExtenderArgs{}
	err := decoder.Decode(args)
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			err = errors.New("more follows the first JSON value")
		}
	}
	large := (*http.MaxBytesError)(nil)
	switch {
	case errors.As(err, &large):
		err = fmt.Errorf("it is larger than %d bytes; nodeCacheCapable: true sends names instead of nodes: %w",
			large.Limit, err)
	case err != nil:
	case args.Pod == nil:
		err = errors.New("it has no Pod")
	case args.NodeNames == nil:
		err = errors.New("it has no NodeNames; the extender wants nodeCacheCapable: true in the scheduler's configuration")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	return args, nil
}

func (e *Extender) answerFilter(ctx context.Context, args *extenderv1.ExtenderArgs) (any, error) {
	names := *args.NodeNames
	statuses, err := e.filter(ctx, args.Pod, names)
	if err != nil {
		return &extenderv1.ExtenderFilterResult{Error: err.Error()}, err
	}
	passed := []string{}
	result := &extenderv1.ExtenderFilterResult{NodeNames: &passed, FailedNodes: extenderv1.FailedNodesMap{},
		FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{}}
	for i, status := range statuses {
		switch {
		case status.IsSuccess():
			passed = append(passed, names[i])
		case status.Code() == fwk.UnschedulableAndUnresolvable:
			result.FailedAndUnresolvableNodes[names[i]] = status.Message()
		default:
			result.FailedNodes[names[i]] = status.Message()
		}
		if status == unknownNode {
			unknownNodes.Inc()
		}
	}
	return result, nil
}

func (e *Extender) answerPrioritize(ctx context.Context, args *extenderv1.ExtenderArgs) (any, error) {
	names := *args.NodeNames
	scores, err := e.prioritize(ctx, args.Pod, names)
	if err != nil {
		return nil, err
	}
	list := make(extenderv1.HostPriorityList, len(names))
	for i, name := range names {
		list[i] = extenderv1.HostPriority{Host: name, Score: scores[i]}
	}
	return list, nil
}

var (
	requests = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "berth_extender",
		Name:      "requests_total",
		Help: "Requests by verb (filter, prioritize) and result: done, failed (the answer is an error), " +
			"bad_request.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"verb", "result"})
	durations = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem:      "berth_extender",
		Name:           "request_duration_seconds",
		Help:           "Time from the first byte of a request to the last of its answer, by verb.",
		Buckets:        metrics.ExponentialBuckets(0.001, 2, 14),
		StabilityLevel: metrics.ALPHA,
	}, []string{"verb"})
	unknownNodes = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem:      "berth_extender",
		Name:           "unknown_nodes_total",
		Help:           "Nodes in requests that the extender did not know: it is behind, or it watches another cluster.",
		StabilityLevel: metrics.ALPHA,
	})
)

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(requests, durations, unknownNodes) })
