package informers

import (
	"fmt"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/test/harness/require"
)

// nodeStore is ByNode on a store without an informer, which tells it of what went.
type nodeStore struct {
	*ByNode[int]
	store cache.Store
}

func newNodeStore() nodeStore {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	return nodeStore{&ByNode[int]{nodes: store, byName: map[string]*v1.Node{}}, store}
}

func (s nodeStore) add(t *testing.T, name string) *v1.Node {
	t.Helper()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, s.store.Update(node))
	return node
}

func (s nodeStore) remove(t *testing.T, node *v1.Node) {
	t.Helper()
	require.NoError(t, s.store.Delete(node))
	s.forget(node.Name)
}

func (s nodeStore) kept() int {
	n := 0
	s.byObject.Range(func(any, any) bool { n++; return true })
	return n
}

func TestAnEntryIsOfOneObject(t *testing.T) {
	t.Parallel()
	s := newNodeStore()
	a, b := s.add(t, "a"), s.add(t, "b")
	s.Of(a).Value, s.Of(b).Value = 1, 2
	if s.Of(a).Value != 1 || s.Of(b).Value != 2 {
		t.Errorf("entries %+v and %+v", s.Of(a), s.Of(b))
	}
	replaced := s.add(t, "a")
	if got := s.Of(replaced); got.Value != 0 || got.Gone {
		t.Errorf("the entry of a replaced object is %+v, want a zero one", got)
	}
	// A cycle that still holds the old object, and one that holds the new one, in turn.
	for range 3 {
		s.Of(a)
		s.Of(replaced)
	}
	if got := s.kept(); got != 2 {
		t.Errorf("%d entries are kept of two nodes", got)
	}
}

func TestNothingIsKeptOfNodesThatWent(t *testing.T) {
	t.Parallel()
	s := newNodeStore()
	for i := range 100 {
		node := s.add(t, fmt.Sprint(i))
		s.Of(node)
		s.add(t, node.Name) // changed once more before it goes, which no cycle has seen
		s.remove(t, node)
		late := s.Of(node)
		if !late.Gone || late.Value != 0 {
			t.Fatalf("a node that went has %+v", late)
		}
	}
	if got := s.kept(); got != 0 || len(s.byName) != 0 {
		t.Errorf("%d entries and %d names are kept of no node", got, len(s.byName))
	}
}

func TestEntriesAreFoundByManyAtOnce(t *testing.T) {
	t.Parallel()
	s := newNodeStore()
	var nodes []*v1.Node
	for i := range 50 {
		nodes = append(nodes, s.add(t, fmt.Sprint(i)))
	}
	found := make([][]*NodeEntry[int], 8)
	var all sync.WaitGroup
	for g := range found {
		all.Go(func() {
			for _, node := range nodes {
				found[g] = append(found[g], s.Of(node))
			}
		})
	}
	all.Wait()
	for i := range nodes {
		for g := range found {
			if found[g][i] != found[0][i] {
				t.Fatalf("node %d has two entries", i)
			}
		}
	}
	if got := s.kept(); got != len(nodes) {
		t.Errorf("%d nodes have %d entries", len(nodes), got)
	}
}
