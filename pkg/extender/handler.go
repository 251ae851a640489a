package extender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

const (
	// bodyBytes is the size of the largest request that is read: a pod, and the names of 100,000 nodes.
	bodyBytes = 8 << 20
	// answeredAtOnce is how many requests are read and answered at once. A scheduler sends one after the other.
	answeredAtOnce = 4
)

// service answers requests with what the extender decides.
type service struct {
	*Extender
	// within is how long an answer may take.
	within time.Duration
	// turns admits requests.
	turns chan struct{}
}

// Handler serves the verbs of the protocol.
//
// A request that cannot be read is answered by an HTTP status. What the extender cannot do is an error within the
// answer where the protocol has room for one: the scheduler shows that to the user, and of a status only the number.
func (e *Extender) Handler(within time.Duration) http.Handler {
	s := &service{Extender: e, within: within, turns: make(chan struct{}, answeredAtOnce)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /filter", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, "filter") })
	mux.HandleFunc("POST /prioritize", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, "prioritize") })
	return http.MaxBytesHandler(mux, bodyBytes)
}

// requestError is an error of the caller.
type requestError struct {
	status int
	error
}

func (b requestError) Unwrap() error { return b.error }

// The values of the label result of the metrics.
const resultDone, resultFailed, resultBad = "done", "failed", "bad_request"

// serve reads a request within the limits and writes the answer, which may hold an error of its own.
func (s *service) serve(w http.ResponseWriter, r *http.Request, verb string) {
	started := time.Now()
	// The context ends as well when the caller is gone.
	ctx, cancel := context.WithTimeout(r.Context(), s.within)
	defer cancel()
	result, err := s.answer(ctx, verb, r.Body)
	outcome := resultDone
	var bad requestError
	switch {
	case errors.As(err, &bad):
		outcome = resultBad
		http.Error(w, err.Error(), bad.status)
	case err != nil && result == nil:
		outcome = resultFailed
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		if err != nil {
			outcome = resultFailed
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(result); err != nil {
			klog.FromContext(ctx).V(2).Info("Writing an answer failed", "verb", verb, "err", err)
		}
	}
	if err != nil {
		klog.FromContext(ctx).Info("A request failed", "verb", verb, "from", r.RemoteAddr, "err", err)
	}
	requests.WithLabelValues(verb, outcome).Inc()
	durations.WithLabelValues(verb).Observe(time.Since(started).Seconds())
}

// answer waits until few others are answered, and answers.
func (s *service) answer(ctx context.Context, verb string, body io.Reader) (any, error) {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%d requests are being answered", answeredAtOnce)
	}
	args, err := decodeArgs(body)
	if err != nil {
		return nil, err
	}
	if verb == "prioritize" {
		return s.answerPrioritize(ctx, args)
	}
	result, err := s.answerFilter(ctx, args)
	if err != nil {
		result = &extenderv1.ExtenderFilterResult{Error: err.Error()}
	}
	return result, err
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
		return nil, requestError{http.StatusRequestEntityTooLarge, fmt.Errorf(
			"reading the request: it is larger than %d bytes; nodeCacheCapable: true sends names instead of nodes", large.Limit)}
	case err != nil:
	case args.Pod == nil:
		err = errors.New("it has no Pod")
	case args.NodeNames == nil:
		err = errors.New("it has no NodeNames; the extender wants nodeCacheCapable: true in the scheduler's configuration")
	}
	if err != nil {
		return nil, requestError{http.StatusBadRequest, fmt.Errorf("reading the request: %w", err)}
	}
	return args, nil
}

func (s *service) answerFilter(ctx context.Context, args *extenderv1.ExtenderArgs) (any, error) {
	names := *args.NodeNames
	statuses, err := s.Filter(ctx, args.Pod, names)
	if err != nil {
		return nil, err
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

func (s *service) answerPrioritize(ctx context.Context, args *extenderv1.ExtenderArgs) (any, error) {
	names := *args.NodeNames
	scores, err := s.Prioritize(ctx, args.Pod, names)
	if err != nil {
		return nil, err
	}
	list := make(extenderv1.HostPriorityList, len(names))
	for i, name := range names {
		list[i] = extenderv1.HostPriority{Host: name, Score: scores[i]}
	}
	return list, nil
}
