package policy

import (
	"fmt"
	"maps"
	"slices"
	"sync"
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
		marks := func(node string) *Marks {
			labels := map[string]string{}
			if pool[node] {
				labels["pool"] = "b"
			}
			return s.MarksOf(nodeWith(node, labels))
		}
		var l Ledger
		m := &model{reserved: map[string]string{}, bound: map[string]string{}, amount: map[string]int64{}}
		demand := func(uid string) *Demand {
			return s.DemandOf(podWith(nil, set{"berth.dev/licenses": fmt.Sprintf("m=%d", m.amount[uid])}), nil)
		}
		holders := func() []Holder {
			var list []Holder
			for uid, node := range m.bound {
				list = append(list, Holder{UID: uid, Node: node, Uses: demand(uid), Marks: marks(node)})
			}
			return list
		}
		uses := func(pod *v1.Pod, node string) (*Demand, *Marks) { return demand(string(pod.UID)), marks(node) }
		l.Rebuild(s, holders, uses, func() {})
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
				reason, ok := l.Reserve(podOf(uid), node, demand(uid), marks(node))
				if !ok || (reason == "") != fits {
					t.Fatalf("reserving %s on %s: %q, %t; it fits: %t", uid, node, reason, ok, fits)
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
				if !l.Bind(uid, node, demand(uid), marks(node)) {
					t.Fatal("the ledger counts for another set")
				}
				m.bound[uid] = node
				if m.reserved[uid] != "" {
					m.reserved[uid] = node
				}
			},
			"release": func(t *rapid.T) {
				uid := uid.Draw(t, "uid")
				held := m.reserved[uid] != "" || m.bound[uid] != ""
				if l.Release(uid) != held {
					t.Fatalf("releasing %s, which held licenses: %t", uid, held)
				}
				delete(m.reserved, uid)
				delete(m.bound, uid)
			},
			"relabel": func(t *rapid.T) {
				node := node.Draw(t, "node")
				pool[node] = !pool[node]
				l.Mark(node, s, marks(node))
			},
			"restart or new policies": func(*rapid.T) {
				// An equal set is another one, as after an edit of anything.
				s, _ = NewSet(policies(t, twoPools))
				l.Rebuild(s, holders, uses, func() {})
			},
			"": func(t *rapid.T) {
				_, used := l.Used()
				if diff := cmp.Diff(m.used(pool), used); diff != "" {
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
		d := s.DemandOf(podWith(nil, set{"berth.dev/licenses": "m"}), nil)
		var l Ledger
		l.Rebuild(s, func() []Holder { return []Holder{{UID: "bound", Node: "x", Uses: d, Marks: in}} }, nil, func() {})
		free, _ := d.FreeFor(&l, "self")
		start := free.Clone()
		for range rapid.IntRange(0, 20).Draw(t, "changes") {
			uid := rapid.SampledFrom([]string{"bound", "new"}).Draw(t, "uid")
			if rapid.Bool().Draw(t, "add") {
				free.Add(&l, uid, d, in)
			} else {
				free.Remove(&l, uid, d, in)
			}
		}
		scribbled := free.Clone()
		free.Add(&l, "bound", d, in)
		free.Remove(&l, "new", d, in)
		if !slices.Equal(start.left, free.left) || len(free.taken)+len(free.freed) > 0 {
			t.Fatalf("free is %v, was %v", free.left, start.left)
		}
		before := slices.Clone(free.left)
		scribbled.Remove(&l, "bound", d, in)
		scribbled.Add(&l, "other", d, in)
		scribbled.left[0] = -100
		if !slices.Equal(before, free.left) || len(free.taken)+len(free.freed) > 0 {
			t.Fatalf("a change of a copy changed the original to %v", free.left)
		}
	})
}

func TestAPodOfAnUnknownNodeCountsInEveryPool(t *testing.T) {
	t.Parallel()
	s := setOf(t, twoPools)
	d := s.DemandOf(podWith(nil, set{"berth.dev/licenses": "m=2"}), nil)
	var l Ledger
	l.Rebuild(s, func() []Holder { return nil }, nil, func() {})
	l.Bind("a", "x", d, nil)
	_, used := l.Used()
	if diff := cmp.Diff([]int64{2, 2, 0}, used); diff != "" {
		t.Errorf("used before the node is known (-want +got):\n%s", diff)
	}
	l.Mark("x", s, s.MarksOf(nodeWith("x", nil)))
	_, used = l.Used()
	if diff := cmp.Diff([]int64{2, 0, 0}, used); diff != "" {
		t.Errorf("used once it is (-want +got):\n%s", diff)
	}
}

func TestReserveAtTheSameTimeNeverGivesTooMany(t *testing.T) {
	t.Parallel()
	s := setOf(t, twoPools)
	m := s.MarksOf(nodeWith("x", set{"pool": "b"}))
	d := s.DemandOf(podWith(nil, set{"berth.dev/licenses": "m"}), nil)
	var l Ledger
	l.Rebuild(s, func() []Holder { return nil }, nil, func() {})
	var wg sync.WaitGroup
	given := make(chan string, 64)
	for i := range 64 {
		wg.Go(func() {
			uid := fmt.Sprint(i)
			if reason, ok := l.Reserve(podOf(uid), "x", d, m); ok && reason == "" {
				given <- uid
			}
		})
	}
	wg.Wait()
	if len(given) != 2 {
		t.Errorf("%d pods were given one of 2 licenses", len(given))
	}
}

func TestADemandOfAnOldSetIsNotCounted(t *testing.T) {
	t.Parallel()
	before, after := setOf(t, twoPools), setOf(t, twoPools)
	d := before.DemandOf(podWith(nil, set{"berth.dev/licenses": "m"}), nil)
	m := before.MarksOf(nodeWith("x", nil))
	var l Ledger
	l.Rebuild(after, func() []Holder { return nil }, nil, func() {})
	if _, ok := l.Reserve(podOf("a"), "x", d, m); ok {
		t.Error("Reserve counts it")
	}
	if l.Bind("a", "x", d, m) {
		t.Error("Bind counts it")
	}
	if _, ok := d.FreeFor(&l, "a"); ok {
		t.Error("it is told what is free")
	}
	l.Mark("x", before, m)
	if _, used := l.Used(); !slices.Equal(used, []int64{0, 0, 0}) {
		t.Errorf("used is %v", used)
	}
}
