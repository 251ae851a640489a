package extender

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// Whatever is sent is answered by a status and a body of the protocol, and nothing that is sent ends the process.
func FuzzRequestsAreAnswered(f *testing.F) {
	verbs := []string{"filter", "prioritize"}
	for _, seed := range []struct {
		verb int
		body string
	}{
		{0, `{"Pod":{"metadata":{"name":"p"}},"NodeNames":["empty","half","nowhere","empty"]}`},
		{0, `{"pod":{"spec":{"containers":[{"resources":{"requests":{"nvidia.com/gpu":"-1"}}}]}},"nodes":{"items":[{}]}}`},
		{1, `{"Pod":{"metadata":{"annotations":{"berth.dev/gpu-models":"|","berth.dev/gpu-memory-min":"40Gi"}},"spec":{"containers":[{"resources":{"requests":{"nvidia.com/gpu":"4"}}}]}},"NodeNames":["empty","half"]}`},
		{1, `{"Pod":{"metadata":{"annotations":{"alibabacloud.com/gpu-milli":"500","alibabacloud.com/gpu-count":"1"}}},"NodeNames":["shared"]}`},
	} {
		f.Add(seed.verb, []byte(seed.body))
	}
	h, _ := newWorld(f, shared("shared", 2), newPod("new", "", 1, nil))
	handler := h.handler(time.Minute)
	f.Fuzz(func(t *testing.T, verb int, body []byte) {
		name := verbs[uint(verb)%uint(len(verbs))]
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/"+name, bytes.NewReader(body)))
		switch w.Code {
		case http.StatusOK:
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable:
			return
		default:
			t.Fatalf("%s of %q: status %d", name, body, w.Code)
		}
		var answer any
		switch name {
		case "filter":
			answer = &extenderv1.ExtenderFilterResult{}
		case "prioritize":
			answer = &extenderv1.HostPriorityList{}
		}
		if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
			t.Fatalf("%s of %q: answer %q: %v", name, body, w.Body, err)
		}
		check(t, body, answer)
	})
}

// check compares an answer with what was asked.
func check(t *testing.T, body []byte, answer any) {
	switch a := answer.(type) {
	case *extenderv1.ExtenderFilterResult:
		args, err := decodeArgs(bytes.NewReader(body))
		if err != nil {
			t.Fatalf("answered %q: %v", body, err)
		}
		if a.Error != "" {
			return
		}
		said := map[string]bool{}
		for _, failed := range []extenderv1.FailedNodesMap{a.FailedNodes, a.FailedAndUnresolvableNodes} {
			for node := range failed {
				said[node] = true
			}
		}
		for _, node := range *a.NodeNames {
			said[node] = true
		}
		for _, node := range *args.NodeNames {
			if !said[node] {
				t.Fatalf("filter of %q says nothing about node %q", body, node)
			}
		}
	case *extenderv1.HostPriorityList:
		for _, p := range *a {
			if p.Score < extenderv1.MinExtenderPriority || p.Score > extenderv1.MaxExtenderPriority {
				t.Fatalf("prioritize of %q: %+v", body, p)
			}
		}
	}
}
