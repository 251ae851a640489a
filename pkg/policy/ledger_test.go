package policy

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// twoPools are licenses; one is limited in a pool besides.
var twoPools = set{"p": `licenses: [{name: all, license: m, count: 4}, {name: pool-b, license: m, count: 2, nodes: {selector: {matchLabels: {pool: b}}}}, {name: other, count: 1}]`}

func podOf(uid string) *v1.Pod {
	pod := podWith(nil, nil)
	pod.UID = types.UID(uid)
	return pod
}

// model is the ledger as plain as it can be: who is where, by whom it is known.
type model struct {
	reserved, bound map[string]string // node by UID
	amount          map[string]int64
}

func (m *model) used(pool map[string]bool) []int64 {
	used := make([]int64, 3)
	where := maps.Clone(m.reserved)
	maps.Copy(where, m.bound)
	for uid, node := range where {
		used[0] += m.amount[uid]
		if pool[node] {
			used[1] += m.amount[uid]
		}
	}
	return used
}

// Whatever is said in whatever order and however often, the ledger counts each pod once, and Reserve never gives more
// than there is.
func TestTheLedgerCountsEachPodOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, problems := NewSet(policies(t, twoPools))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		pool := map[string]bool{}
		marks := func(node string) Marks {
			labels := map[string]string{}
			if pool[node] {
				labels["pool"] = "b"
			}
			return s.MarksOf(nodeWith(node, labels))
		}
		l := NewLedger(s)
		m := &model{reserved: map[string]string{}, bound: map[string]string{}, amount: map[string]int64{}}
		demand := func(uid string) *Demand {
			return s.DemandOf(podWith(nil, set{"berth.dev/licenses": fmt.Sprintf("m=%d", m.amount[uid])}), namespaceWith(nil))
		}
		bound := func(uid, node string) *v1.Pod {
			pod := podOf(uid)
			pod.Spec.NodeName = node
			return pod
		}
		pods := []string{"a", "b", "c", "d", "e"}
		for i, uid := range pods {
			m.amount[uid] = int64(i%3 + 1)
		}
		uid, node := rapid.SampledFrom(pods), rapid.SampledFrom([]string{"x", "y"})
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				uid, node := uid.Draw(t, "uid"), node.Draw(t, "node")
				if m.bound[uid] != "" {
					t.Skip("the scheduler has no cycle for it")
				}
				before := *m
				before.reserved, before.bound = maps.Clone(m.reserved), maps.Clone(m.bound)
				m.reserved[uid] = node
				used := m.used(pool)
				fits := used[0] <= 4 && (!pool[node] || used[1] <= 2)
				if reason := l.Reserve(podOf(uid), node, demand(uid), marks(node)); (reason == "") != fits {
					t.Fatalf("reserving %s on %s: %q; it fits: %t", uid, node, reason, fits)
				}
				if !fits {
					*m = before
				}
			},
			"unreserve": func(t *rapid.T) {
				uid := uid.Draw(t, "uid")
				l.Unreserve(uid)
				delete(m.reserved, uid)
			},
			"bind": func(t *rapid.T) {
				uid, node := uid.Draw(t, "uid"), node.Draw(t, "node")
				if known := m.bound[uid]; known != "" {
					node = known // a pod never changes its node
				} else if known := m.reserved[uid]; known != "" {
					node = known
				}
				l.Bind(bound(uid, node), demand(uid), marks(node))
				m.bound[uid] = node
				if m.reserved[uid] != "" {
					m.reserved[uid] = node
				}
			},
			"release": func(t *rapid.T) {
				uid := uid.Draw(t, "uid")
				l.Release(uid)
				delete(m.reserved, uid)
				delete(m.bound, uid)
			},
			"relabel": func(t *rapid.T) {
				node := node.Draw(t, "node")
				pool[node] = !pool[node]
				l.Mark(node, marks(node))
			},
			"restart or new policies": func(*rapid.T) {
				// An equal set is another one, as after an edit of anything.
				s, _ = NewSet(policies(t, twoPools))
				before := l
				l = NewLedger(s)
				for pod, node := range before.Assumed() {
					l.Assume(pod, node, demand(string(pod.UID)), marks(node))
				}
				for uid, node := range m.bound {
					l.Bind(bound(uid, node), demand(uid), marks(node))
				}
			},
			"": func(t *rapid.T) {
				if diff := cmp.Diff(m.used(pool), l.used); diff != "" {
					t.Fatalf("used (-want +got):\n%s", diff)
				}
			},
		})
	})
}

// Adding and removing pods in any order, as preemption and dry runs do, ends where it began, and a copy is not touched.
func TestWhatACycleAddsAndRemovesCancelsOut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, _ := NewSet(policies(t, twoPools))
		in := s.MarksOf(nodeWith("x", set{"pool": "b"}))
		d := s.DemandOf(podWith(nil, set{"berth.dev/licenses": "m"}), namespaceWith(nil))
		l := NewLedger(s)
		l.Bind(podOf("bound"), d, in)
		free := l.FreeFor("self")
		start := free.Clone()
		for range rapid.IntRange(0, 20).Draw(t, "changes") {
			uid := rapid.SampledFrom([]string{"bound", "new"}).Draw(t, "uid")
			free.Count(uid, d, in, rapid.Bool().Draw(t, "counts"))
		}
		scribbled := free.Clone()
		free.Count("bound", d, in, true)
		free.Count("new", d, in, false)
		if !slices.Equal(start.left, free.left) {
			t.Fatalf("free is %v, was %v", free.left, start.left)
		}
		before := slices.Clone(free.left)
		scribbled.Count("bound", d, in, false)
		scribbled.Count("other", d, in, true)
		scribbled.left[0] = -100
		if !slices.Equal(before, free.left) || free.changed["bound"] || free.changed["other"] {
			t.Fatalf("a change of a copy changed the original to %v", free.left)
		}
	})
}

func TestAPodOfAnUnknownNodeCountsInEveryPool(t *testing.T) {
	t.Parallel()
	s := setOf(t, twoPools)
	d := s.DemandOf(podWith(nil, set{"berth.dev/licenses": "m=2"}), namespaceWith(nil))
	l, pod := NewLedger(s), podOf("a")
	pod.Spec.NodeName = "x"
	l.Bind(pod, d, "")
	if diff := cmp.Diff([]int64{2, 2, 0}, l.used); diff != "" {
		t.Errorf("used before the node is known (-want +got):\n%s", diff)
	}
	l.Mark("x", s.MarksOf(nodeWith("x", nil)))
	if diff := cmp.Diff([]int64{2, 0, 0}, l.used); diff != "" {
		t.Errorf("used once it is (-want +got):\n%s", diff)
	}
}
