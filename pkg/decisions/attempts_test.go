package decisions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// unfit is the status of a pod that no node is good enough for: a number of nodes lack GPUs, and the same number have a
// taint.
func unfit(lackGPUs, tainted int) *fwk.Status {
	statuses := framework.NewDefaultNodeToStatus()
	set := func(n int, name, plugin, reason string) {
		for i := range n {
			status := fwk.NewStatus(fwk.Unschedulable, reason)
			status.SetPlugin(plugin)
			statuses.Set(fmt.Sprintf("%s-%d", name, i), status)
		}
	}
	set(lackGPUs, "full", "NodeResourcesFit", "Insufficient nvidia.com/gpu")
	set(tainted, "tainted", "TaintToleration", "node(s) had untolerated taints")
	return fwk.NewStatus(fwk.Unschedulable).WithError(&framework.FitError{NumAllNodes: lackGPUs + tainted,
		Diagnosis: framework.Diagnosis{NodeToStatus: statuses}})
}

// turnedDown is the status of a pod that a plugin turns down, of all the nodes.
func turnedDown(nodes int, plugin, reason string) *fwk.Status {
	statuses := framework.NewDefaultNodeToStatus()
	status := fwk.NewStatus(fwk.Unschedulable, reason)
	status.SetPlugin(plugin)
	statuses.SetAbsentNodesStatus(status)
	return fwk.NewStatus(fwk.Unschedulable).WithError(&framework.FitError{NumAllNodes: nodes,
		Diagnosis: framework.Diagnosis{NodeToStatus: statuses, PreFilterMsg: reason}})
}

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func history(t testing.TB, most int) *History {
	t.Helper()
	h, err := New(most)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestAnAttemptIsRememberedWithItsReasons(t *testing.T) {
	t.Parallel()
	failed := fwk.NewStatus(fwk.Error, "the API server is not there")
	failed.SetPlugin("DefaultBinder")
	for _, tt := range []struct {
		name       string
		status     *fwk.Status
		node       string
		nominating *fwk.NominatingInfo
		want       Failure
	}{
		{"nodes that lack something", unfit(4, 1), "", nil,
			Failure{Nodes: 5,
				Message: "0/5 nodes are available: 1 node(s) had untolerated taints, 4 Insufficient nvidia.com/gpu.",
				Rejected: []Rejected{
					{Plugin: "NodeResourcesFit", Reasons: []string{"Insufficient nvidia.com/gpu"}, Nodes: 4,
						Examples: []string{"full-0", "full-1", "full-2"}},
					{Plugin: "TaintToleration", Reasons: []string{"node(s) had untolerated taints"}, Nodes: 1,
						Examples: []string{"tainted-0"}},
				}}},
		{"a pod that waits for others, whatever the node", turnedDown(5, "Coscheduling", "2 members are missing"), "", nil,
			Failure{Nodes: 5, Message: "0/5 nodes are available: 2 members are missing.",
				Rejected: []Rejected{{Plugin: "Coscheduling", Reasons: []string{"2 members are missing"}, Nodes: 5,
					Examples: []string{}}}}},
		{"a node on which pods are evicted", unfit(1, 0), "", &fwk.NominatingInfo{NominatedNodeName: "full-0"},
			Failure{Nodes: 1, Nominated: "full-0",
				Message: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
				Rejected: []Rejected{{Plugin: "NodeResourcesFit", Reasons: []string{"Insufficient nvidia.com/gpu"}, Nodes: 1,
					Examples: []string{"full-0"}}}}},
		{"a binding that fails", failed, "full-0", nil, Failure{Node: "full-0", Message: "the API server is not there",
			Rejected: []Rejected{{Plugin: "DefaultBinder", Reasons: []string{"the API server is not there"},
				Examples: []string{}}}}},
		{"no nodes at all", fwk.AsStatus(errors.New("no nodes available to schedule pods")), "", nil,
			Failure{Message: "no nodes available to schedule pods"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h, pod := history(t, 10), podOf("a")
			pod.Spec.NodeName = tt.node
			h.failed("berth-scheduler", pod, tt.status, tt.nominating, noon)
			tt.want.First, tt.want.Last, tt.want.Times = noon, noon, 1
			want := Attempt{Pod: types.NamespacedName{Namespace: "default", Name: "a"}, UID: "uid-a", Profile: "berth-scheduler",
				Failure: tt.want}
			if diff := cmp.Diff([]Attempt{want}, h.List().Attempts); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
		})
	}
}

// say is a list of attempts in short.
func say(list []Attempt) (said []string) {
	for _, a := range list {
		said = append(said, fmt.Sprintf("%s ×%d %s–%s: %s", a.Pod.Name, a.Times, a.First.Format("05"), a.Last.Format("05"),
			a.Message))
	}
	return said
}

func TestAttemptsThatEndAlikeAreOne(t *testing.T) {
	t.Parallel()
	h, a, b := history(t, 10), podOf("a"), podOf("b")
	for second, try := range []struct {
		lack, tainted int
	}{{2, 1}, {3, 2}, {0, 1}, {2, 1}} { // other numbers are no other reason, other plugins are
		h.failed("p", a, unfit(try.lack, try.tainted), nil, noon.Add(time.Duration(second)*time.Second))
		h.failed("p", b, turnedDown(2, "Coscheduling", fmt.Sprintf("it waits for %d members", 10-second)), nil,
			noon.Add(time.Duration(second)*time.Second))
	}
	want := []string{
		"b ×4 00–03: 0/2 nodes are available: it waits for 7 members.",
		"a ×1 03–03: 0/3 nodes are available: 1 node(s) had untolerated taints, 2 Insufficient nvidia.com/gpu.",
		"a ×1 02–02: 0/1 nodes are available: 1 node(s) had untolerated taints.",
		"a ×2 00–01: 0/5 nodes are available: 2 node(s) had untolerated taints, 3 Insufficient nvidia.com/gpu.",
	}
	if diff := cmp.Diff(want, say(h.List().Attempts)); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

func TestAGangThatIsPlannedInVainIsAnAttemptOfItsLeader(t *testing.T) {
	t.Parallel()
	h, leader := history(t, 10), podOf("g-0")
	leader.Spec.SchedulerName = "gang-scheduler"
	h.Blocked("Coscheduling", leader, "gang g needs 8 nodes, fits 6")
	h.Blocked("Coscheduling", leader, "gang g needs 8 nodes, fits 7")
	list := h.List().Attempts
	if len(list) != 1 || list[0].Times != 2 || list[0].Profile != "gang-scheduler" {
		t.Fatalf("got %+v, want one attempt of gang-scheduler, twice", list)
	}
	if diff := cmp.Diff([]Rejected{{Plugin: "Coscheduling", Reasons: []string{"gang g needs 8 nodes, fits 7"},
		Examples: []string{}}}, list[0].Rejected); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	h := history(t, 6)
	for i := range 10 {
		h.failed("p", podOf("restless"), turnedDown(1, "P", "reason "+string(rune('a'+i))), nil, noon)
	}
	if got := len(h.List().Attempts); got != mostPerPod {
		t.Errorf("keeps %d attempts of a pod, want %d", got, mostPerPod)
	}
	for i := range 10 {
		h.failed("p", podOf(fmt.Sprint("p", i)), unfit(1, 0), nil, noon)
	}
	h.failed("p", podOf("p4"), unfit(2, 0), nil, noon.Add(time.Second))
	var got []string
	want, sum := []string{"p4", "p9", "p8", "p7", "p6", "p5"}, 0
	for _, a := range h.List().Attempts {
		got = append(got, a.Pod.Name)
		sum += a.bytes()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if h.attempts.bytes != sum || len(h.attempts.byPod) != len(want) {
		t.Errorf("counts %d bytes of %d pods, want the %d of the %d that are kept", h.attempts.bytes, len(h.attempts.byPod),
			sum, len(want))
	}

	large := history(t, Most)
	statuses := framework.NewDefaultNodeToStatus()
	for n := range 2 * mostRejected {
		status := fwk.NewStatus(fwk.Unschedulable, strings.Repeat("x", 10*mostMessage)+fmt.Sprint(n))
		status.SetPlugin(fmt.Sprint("P", n))
		statuses.Set(fmt.Sprint("n", n), status)
	}
	status := fwk.NewStatus(fwk.Unschedulable).WithError(&framework.FitError{NumAllNodes: 2 * mostRejected,
		Diagnosis: framework.Diagnosis{NodeToStatus: statuses}})
	for i := range 2 * mostAttemptBytes / mostRejected / mostMessage {
		large.failed("p", podOf(fmt.Sprint("p", i)), status, nil, noon)
	}
	if n := len(large.List().Attempts); n < 2 || large.attempts.bytes > mostAttemptBytes {
		t.Errorf("keeps %d attempts of %d bytes, want several within %d bytes", n, large.attempts.bytes, mostAttemptBytes)
	}
}

func TestThePodThatIsAskedAboutIsTheLatestOfItsName(t *testing.T) {
	t.Parallel()
	inner, nodes := cluster(2)
	p, h := wrapped(t, inner, 10)
	old, now := podOf("a"), podOf("a")
	old.UID = "old"
	h.failed("p", old, unfit(1, 0), nil, noon)
	decide(p, old, nodes, true, "node-0")
	name := types.NamespacedName{Namespace: "default", Name: "a"}
	list := h.List()
	if d, attempts := list.Of(Subject{NamespacedName: name}); d == nil || d.UID != "old" || len(attempts) != 1 {
		t.Errorf("got decision %+v and attempts %v, want those of the only pod", d, attempts)
	}
	h.failed("p", now, unfit(1, 0), nil, time.Now().Add(time.Second))
	list = h.List()
	if d, attempts := list.Of(Subject{NamespacedName: name}); d != nil || len(attempts) != 1 ||
		attempts[0].UID != now.UID {
		t.Errorf("got decision %+v and attempts %v, want the attempt of the latest pod alone", d, attempts)
	}
	if d, attempts := list.Of(Subject{NamespacedName: name, UID: "old"}); d == nil || len(attempts) != 1 ||
		attempts[0].UID != "old" {
		t.Errorf("got decision %+v and attempts %v, want those of the pod that is asked about", d, attempts)
	}
}

func TestFailuresAreHeardAndHandledAsBefore(t *testing.T) {
	t.Parallel()
	h, handled := history(t, 10), 0
	handle := h.Listen(func(context.Context, framework.Framework, *framework.QueuedPodInfo, *fwk.Status,
		*fwk.NominatingInfo, time.Time) {
		if handled++; len(h.List().Attempts) != 1 {
			t.Error("the attempt is not known when the failure is handled")
		}
	})
	info, err := framework.NewPodInfo(podOf("a"))
	if err != nil {
		t.Fatal(err)
	}
	handle(t.Context(), &fixed{}, &framework.QueuedPodInfo{PodInfo: info}, unfit(1, 0), nil, noon)
	if handled != 1 {
		t.Errorf("the handler was called %d times, want once", handled)
	}
}

func TestASchedulerIsAsked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"decisions":            {http.StatusOK, `{"berth.dev/decisions": {"kept": 7}}`, ""},
		"no right":             {http.StatusForbidden, ``, "403 Forbidden; the right to get the non-resource URL /configz is needed"},
		"no credentials":       {http.StatusUnauthorized, ``, "the right to get the non-resource URL /configz is needed"},
		"another server":       {http.StatusNotFound, ``, "asking the scheduler for its decisions: 404 Not Found"},
		"a scheduler of stock": {http.StatusOK, `{"componentconfig": {}}`, "keeps no decisions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != Path {
					t.Errorf("asks for %s, want %s", r.URL.Path, Path)
				}
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			}))
			defer server.Close()
			list, err := Ask(t.Context(), &rest.Config{Host: server.URL})
			switch {
			case tt.want == "" && (err != nil || list.Kept != 7):
				t.Errorf("got %+v and error %v, want a list", list, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got error %v, want %q in it", err, tt.want)
			}
		})
	}
	if _, err := Ask(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}); err == nil ||
		errors.Is(err, context.Canceled) {
		t.Errorf("got error %v from a server that is not there, want one", err)
	}
}

// BenchmarkAttempt is what the history adds to an attempt that fails.
func BenchmarkAttempt(b *testing.B) {
	for _, n := range []int{64, 500, 5000} {
		b.Run(fmt.Sprintf("%d-nodes", n), func(b *testing.B) {
			h, pod, status := history(b, Default), podOf("a"), unfit(n*9/10, n/10)
			b.ReportAllocs()
			for b.Loop() {
				h.failed("p", pod, status, nil, noon)
			}
		})
	}
}
