package explain

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/decisions"
	"berth.dev/berth/pkg/tables"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func subject(name string) decisions.Subject {
	return decisions.Subject{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
}

func attempt(name string, change func(*decisions.Attempt)) decisions.Attempt {
	a := decisions.Attempt{Pod: subject(name).NamespacedName, UID: types.UID(name), Profile: "berth-scheduler",
		Failure: decisions.Failure{
			First: noon, Last: noon.Add(90 * time.Second), Times: 4, Message: "0/5 nodes are available: …", Nodes: 5,
			Rejected: []decisions.Rejected{
				{Plugin: "NodeResourcesFit", Reasons: []string{"Insufficient nvidia.com/gpu"}, Nodes: 4,
					Examples: []string{"a", "b", "c"}},
				{Plugin: "TaintToleration", Reasons: []string{"node(s) had untolerated taint(s)"}, Nodes: 1,
					Examples: []string{"t"}},
			}}}
	if change != nil {
		change(&a)
	}
	return a
}

func TestOneSentenceSaysWhyAPodHadNoNode(t *testing.T) {
	t.Parallel()
	ofThePod := []decisions.Rejected{{Plugin: "Coscheduling", Reasons: []string{"2 members are missing"}, Nodes: 5,
		Examples: []string{}}}
	for _, tt := range []struct {
		name   string
		change func(*decisions.Attempt)
		want   string
	}{
		{"nodes that lack something", nil,
			"No node fitted: of 5 nodes, 4 with too little nvidia.com/gpu free (NodeResourcesFit) and 1 had untolerated " +
				"taint(s) (TaintToleration)."},
		{"evictions", func(a *decisions.Attempt) { a.Nominated = "b" },
			"(TaintToleration); pods were evicted for it from b."},
		{"a reason that is the pod's", func(a *decisions.Attempt) { a.Rejected = ofThePod },
			"It was given no node: 2 members are missing (Coscheduling)."},
		{"a binding that failed", func(a *decisions.Attempt) {
			a.Node, a.Rejected = "b", []decisions.Rejected{{Plugin: "DefaultBinder", Reasons: []string{"no quota."}}}
		},
			"b was chosen, and the pod could not be bound to it: no quota. (DefaultBinder)."},
		{"no nodes at all", func(a *decisions.Attempt) { a.Rejected, a.Message = nil, "no nodes available" },
			"It was given no node: no nodes available."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e, err := Past(&decisions.List{Kept: 10, Attempts: []decisions.Attempt{attempt("p", tt.change)}}, subject("p"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(e.Why, tt.want) || e.State != "pending" || e.Winner != "" {
				t.Errorf("got %q, %s, winner %q; want %q in it of a pending pod without a winner", e.Why, e.State, e.Winner,
					tt.want)
			}
			if want := "found no node at 2026-07-01T12:01:30Z, for the same reasons as in 3 earlier attempts since " +
				"2026-07-01T12:00:00Z"; e.Verdict != want {
				t.Errorf("got the verdict %q, want %q", e.Verdict, want)
			}
		})
	}
}

func TestTheFirstPodOfWhichAnythingIsRememberedIsExplained(t *testing.T) {
	t.Parallel()
	list := &decisions.List{Kept: 10,
		Items: []decisions.Decision{{Time: noon, Pod: subject("p").NamespacedName, UID: "p", Node: "a",
			ChosenBy: "Coscheduling"}},
		Attempts: []decisions.Attempt{attempt("p", nil), attempt("q", nil)}}
	for _, tt := range []struct {
		of   []decisions.Subject
		want string
	}{
		{[]decisions.Subject{subject("p")}, "default/p bound Coscheduling left the pod no other node than a."},
		{[]decisions.Subject{subject("x"), subject("q"), subject("p")}, "default/q pending No node fitted"},
		{[]decisions.Subject{subject("x")}, "the scheduler remembers nothing of pod default/x: it keeps the last 10"},
		{[]decisions.Subject{subject("x"), subject("y")}, "the scheduler remembers nothing of pod default/x and 1 other:"},
	} {
		e, err := Past(list, tt.of...)
		var got string
		if err != nil {
			got = err.Error()
		} else {
			got = e.Pod.String() + " " + e.State + " " + e.Why
			if len(e.Attempts) != 1 {
				t.Errorf("%v: got attempts %v, want that of the pod", tt.of, e.Attempts)
			}
		}
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%v: got %q, want %q first", tt.of, got, tt.want)
		}
	}
}

func TestAttemptsAreShown(t *testing.T) {
	t.Parallel()
	list := &decisions.List{Attempts: []decisions.Attempt{attempt("p", nil), attempt("p", func(a *decisions.Attempt) {
		a.First, a.Last, a.Times, a.Rejected, a.Message, a.Nodes = noon.Add(-time.Minute), noon.Add(-time.Minute), 1, nil,
			"no nodes available", 0
	})}}
	e, err := Past(list, subject("p"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := e.WriteTable(tables.Output{Writer: &out, Screen: tables.Screen{Width: 160}}, 10); err != nil {
		t.Fatal(err)
	}
	want := `
 attempt               times  since                 nodes  rejected by       because                           which
 2026-07-01T12:01:30Z      4  2026-07-01T12:00:00Z      4  NodeResourcesFit  Insufficient nvidia.com/gpu       a b c …
                                                        1  TaintToleration   node(s) had untolerated taint(s)  t
 2026-07-01T11:59:00Z      1  2026-07-01T11:59:00Z                           no nodes available
`
	if _, got, _ := strings.Cut(out.String(), "since 2026-07-01T12:00:00Z\n"); cmp.Diff(want, got) != "" {
		t.Errorf("attempts (-want +got):\n%s", cmp.Diff(want, got))
	}
}
