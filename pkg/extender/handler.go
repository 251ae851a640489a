package extender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// Limits bound what one request may take.
type Limits struct {
	// BodyBytes is the size of the largest body that is read.
	BodyBytes int64
	// Time is how long an answer may take.
	Time time.Duration
}

// service answers requests with what the extender decides.
type service struct {
	*Extender
	limits Limits
	ready  func() error
	// large are requests that may list all nodes, and turns admits them to be answered once they are read.
	large bodies
	turns chan struct{}
}

const (
	// largeAtOnce is how many requests that may list all nodes are answered at once, and how many of the largest size
	// are held in memory. A scheduler sends one after the other.
	largeAtOnce = 4
	// bindBytes is the size of the largest request to bind; there may be many at once. It holds four names.
	bindBytes = 16 << 10
)

// Handler serves the verbs of the protocol. ready says why no request may be answered now, and nil if one may.
//
// A request that cannot be read is answered by an HTTP status. What the extender cannot do is an error within the
// answer where the protocol has room for one: the scheduler shows that to the user, and of a status only the number.
func (e *Extender) Handler(limits Limits, ready func() error) http.Handler {
	s := &service{Extender: e, limits: limits, ready: ready,
		large: bodies{most: largeAtOnce * limits.BodyBytes}, turns: make(chan struct{}, largeAtOnce)}
	mux := http.NewServeMux()
	mux.Handle("POST /filter", s.oneOfFew(s.serve("filter", s.answerFilter)))
	mux.Handle("POST /prioritize", s.oneOfFew(s.serve("prioritize", s.answerPrioritize)))
	mux.Handle("POST /preempt", s.oneOfFew(s.serve("preempt", s.answerPreempt)))
	if e.binds {
		mux.Handle("POST /bind", http.MaxBytesHandler(s.serve("bind", s.answerBind), min(limits.BodyBytes, bindBytes)))
	}
	return mux
}

// requestError is an error of the caller.
type requestError struct {
	status int
	error
}

func (b requestError) Unwrap() error { return b.error }

// The values of the label result of the metrics.
const resultDone, resultFailed, resultBad = "done", "failed", "bad_request"

// oneOfFew reads a request, and lets it wait, within the time for its answer, until few others are being answered. One
// that is slow to arrive takes no turn.
func (s *service) oneOfFew(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), s.limits.Time)
		defer cancel()
		content, release, err := s.large.read(w, r, s.limits.BodyBytes)
		defer release()
		if err != nil {
			r.Body = io.NopCloser(failing{err})
			next.ServeHTTP(w, r)
			return
		}
		select {
		case s.turns <- struct{}{}:
			defer func() { <-s.turns }()
			r = r.WithContext(ctx)
			r.Body = io.NopCloser(content)
			next.ServeHTTP(w, r)
		case <-ctx.Done():
			http.Error(w, fmt.Sprintf("%d requests are being answered", largeAtOnce), http.StatusServiceUnavailable)
		}
	})
}

// serve reads a request within the limits and writes the answer, which may hold an error of its own.
func (s *service) serve(verb string, answer func(ctx context.Context, body io.Reader) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		// The context ends as well when the caller is gone.
		ctx, cancel := context.WithTimeout(r.Context(), s.limits.Time)
		defer cancel()
		result, err := answer(ctx, r.Body)
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
	})
}

// decode reads one JSON value and nothing after it.
func decode(body io.Reader, into any) error {
	decoder := json.NewDecoder(body)
	err := decoder.Decode(into)
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = errors.New("more follows the first JSON value")
		}
	}
	if errors.Is(err, errCutOff) {
		return err
	}
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return requestError{http.StatusRequestEntityTooLarge, fmt.Errorf(
			"reading the request: it is larger than %d bytes (--max-request-bytes); nodeCacheCapable: true sends names "+
				"instead of nodes", large.Limit)}
	}
	return requestError{http.StatusBadRequest, fmt.Errorf("reading the request: %w", err)}
}

// decodeArgs reads what filter and prioritize are given, and the names of the nodes.
func decodeArgs(body io.Reader) (*extenderv1.ExtenderArgs, []string, error) {
	args := &extenderv1.ExtenderArgs{}
	if err := decode(body, args); err != nil {
		return nil, nil, err
	}
	switch {
	case args.Pod == nil:
		return nil, nil, requestError{http.StatusBadRequest, errors.New("reading the request: it has no Pod")}
	case (args.Nodes == nil) == (args.NodeNames == nil):
		return nil, nil, requestError{http.StatusBadRequest,
			errors.New("reading the request: want either Nodes or NodeNames")}
	case args.NodeNames != nil:
		return args, *args.NodeNames, nil
	}
	names := make([]string, len(args.Nodes.Items))
	for i := range args.Nodes.Items {
		names[i] = args.Nodes.Items[i].Name
	}
	return args, names, nil
}

func (s *service) answerFilter(ctx context.Context, body io.Reader) (any, error) {
	args, names, err := decodeArgs(body)
	if err != nil {
		return nil, err
	}
	var verdicts []Verdict
	if err = s.ready(); err == nil {
		verdicts, err = s.Filter(ctx, args.Pod, names)
	}
	if err != nil {
		return &extenderv1.ExtenderFilterResult{Error: err.Error()}, err
	}
	return filterResult(args, names, verdicts), nil
}

// filterResult tells the verdicts in the form in which the nodes were given.
func filterResult(args *extenderv1.ExtenderArgs, names []string, verdicts []Verdict) *extenderv1.ExtenderFilterResult {
	result := &extenderv1.ExtenderFilterResult{
		FailedNodes: extenderv1.FailedNodesMap{}, FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{},
	}
	passed, nodes := []string{}, &v1.NodeList{Items: []v1.Node{}}
	for i, v := range verdicts {
		switch {
		case v.reason == "" && args.Nodes != nil:
			nodes.Items = append(nodes.Items, args.Nodes.Items[i])
		case v.reason == "":
			passed = append(passed, names[i])
		case v.final:
			result.FailedAndUnresolvableNodes[names[i]] = v.reason
		default:
			result.FailedNodes[names[i]] = v.reason
		}
	}
	if args.Nodes != nil {
		result.Nodes = nodes
	} else {
		result.NodeNames = &passed
	}
	return result
}

func (s *service) answerPrioritize(ctx context.Context, body io.Reader) (any, error) {
	args, names, err := decodeArgs(body)
	if err != nil {
		return nil, err
	}
	if err := s.ready(); err != nil {
		return nil, err
	}
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

// decodePreemption reads on which nodes which pods would be evicted, and names pods by their UIDs in any case.
func decodePreemption(body io.Reader) (*v1.Pod, map[string]*extenderv1.MetaVictims, error) {
	args := &extenderv1.ExtenderPreemptionArgs{}
	if err := decode(body, args); err != nil {
		return nil, nil, err
	}
	switch {
	case args.Pod == nil:
		return nil, nil, requestError{http.StatusBadRequest, errors.New("reading the request: it has no Pod")}
	case (args.NodeNameToVictims == nil) == (args.NodeNameToMetaVictims == nil):
		return nil, nil, requestError{http.StatusBadRequest,
			errors.New("reading the request: want either NodeNameToVictims or NodeNameToMetaVictims")}
	}
	victims := args.NodeNameToMetaVictims
	if victims == nil {
		victims = make(map[string]*extenderv1.MetaVictims, len(args.NodeNameToVictims))
	}
	for node, v := range args.NodeNameToVictims {
		if v == nil {
			victims[node] = nil
			continue
		}
		victims[node] = &extenderv1.MetaVictims{NumPDBViolations: v.NumPDBViolations}
		for _, pod := range v.Pods {
			if pod == nil {
				pod = &v1.Pod{}
			}
			victims[node].Pods = append(victims[node].Pods, &extenderv1.MetaPod{UID: string(pod.UID)})
		}
	}
	for node, v := range victims {
		if v == nil || slices.ContainsFunc(v.Pods, func(p *extenderv1.MetaPod) bool { return p == nil || p.UID == "" }) {
			return nil, nil, requestError{http.StatusBadRequest,
				fmt.Errorf("reading the request: want pods with a UID as victims on node %q", node)}
		}
	}
	return args.Pod, victims, nil
}

// answerPreempt has no room for an error in its answer.
func (s *service) answerPreempt(ctx context.Context, body io.Reader) (any, error) {
	pod, victims, err := decodePreemption(body)
	if err != nil {
		return nil, err
	}
	if err := s.ready(); err != nil {
		return nil, err
	}
	left, err := s.Preempt(ctx, pod, victims)
	if err != nil {
		return nil, err
	}
	return &extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: left}, nil
}

func (s *service) answerBind(ctx context.Context, body io.Reader) (any, error) {
	args := &extenderv1.ExtenderBindingArgs{}
	if err := decode(body, args); err != nil {
		return nil, err
	}
	if args.PodName == "" || args.PodNamespace == "" || args.PodUID == "" || args.Node == "" {
		return nil, requestError{http.StatusBadRequest,
			errors.New("reading the request: want PodName, PodNamespace, PodUID and Node")}
	}
	err := s.ready()
	if err == nil {
		err = s.Bind(ctx, args)
	}
	if err != nil {
		return &extenderv1.ExtenderBindingResult{Error: err.Error()}, err
	}
	return &extenderv1.ExtenderBindingResult{}, nil
}
