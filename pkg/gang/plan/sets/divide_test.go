package sets

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/test/harness/require"
)

const (
	rackKey  = "example.com/rack"
	indexKey = "batch.kubernetes.io/job-completion-index"
)

// aSegment is what a segment has by a plain count.
type aSegment struct {
	// pending counts the members to be placed, bound the members by rack that have a node.
	pending int
	bound   map[string]int
}

// mostBound is the rack with the most members that have a node, the first of several; empty without one.
func (s *aSegment) mostBound() (most string, all int) {
	for _, rack := range []string{"a", "b", "c"} {
		if all += s.bound[rack]; s.bound[rack] > s.bound[most] {
			most = rack
		}
	}
	return most, all
}

// fewestWhole is how many segments of these sizes have to be whole for the needed members, tried one number after the
// other.
func fewestWhole(sizes []int, need int) int {
	slices.Sort(sizes)
	for n := range sizes {
		sum := 0
		for _, size := range sizes[len(sizes)-n:] {
			sum += size
		}
		if sum >= need {
			return n
		}
	}
	return len(sizes)
}

// Members are in the set of the segment of their rank, whichever of them have a node and whichever are missing; each
// set knows in which rack most of its members are, and the gang how many sets have to be whole.
func TestSegmentsAgainstACount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := gang.ID{Namespace: "ns", Name: "g"}
		store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		d := &Divider{Ledger: gang.NewLedger(time.Minute, make(chan struct{}, 1)),
			Capacity: capacity.New(&process.Profiles{})}
		d.Members = &members.Directory{Policy: &read.OwnerPolicy{}, Ledger: d.Ledger,
			Groups: cache.NewStore(cache.MetaNamespaceKeyFunc), Lister: corelisters.NewPodLister(store)}
		for _, rack := range []string{"a", "b", "c"} {
			d.Capacity.Feed.SetNode(st.MakeNode().Name("n-"+rack).Label(rackKey, rack).Obj())
		}
		size := rapid.IntRange(1, 4).Draw(t, "size")
		segments := map[int]*aSegment{}
		var pending []gang.Member
		segmentOf := map[gang.UID]int{}
		for rank := range rapid.IntRange(1, 12).Draw(t, "ranks") {
			where := rapid.SampledFrom([]string{"missing", "pending", "pending", "a", "b", "c"}).Draw(t, "where")
			if where == "missing" {
				continue
			}
			name := fmt.Sprint("p", rank)
			pod := st.MakePod().Namespace("ns").Name(name).UID(name).Label(indexKey, fmt.Sprint(rank)).Obj()
			m := gang.Member{Ref: gang.Ref{Namespace: "ns", Name: name, UID: gang.UID(name)}, Ours: true}
			at := segments[rank/size]
			if at == nil {
				at = &aSegment{bound: map[string]int{}}
				segments[rank/size] = at
			}
			segmentOf[m.UID] = rank / size
			if where == "pending" {
				m.State = gang.Pending
				pending = append(pending, m)
				at.pending++
			} else {
				m.State, m.Node, pod.Spec.NodeName = gang.Bound, "n-"+where, "n-"+where
				at.bound[where]++
			}
			require.NoError(t, store.Add(pod))
			d.Ledger.Observe(id, m, time.Now())
		}
		if len(pending) == 0 {
			t.Skip("no member is to be placed")
		}
		need := rapid.IntRange(1, len(pending)).Draw(t, "need")
		levels := read.Topology{Segment: read.Segment{Size: size, Level: rackKey}}
		got, err := d.Divide(id, levels, gang.Minimum{Total: need}, pending)
		require.NoError(t, err)
		for _, m := range pending {
			for _, other := range pending {
				if same := segmentOf[m.UID] == segmentOf[other.UID]; same != (got.of[m.UID] == got.of[other.UID]) {
					t.Errorf("%s and %s in one set: %t, want %t", m.Name, other.Name, !same, same)
				}
			}
			set := got.all[got.of[m.UID]]
			want := segments[segmentOf[m.UID]]
			rack, bound := want.mostBound()
			if len(set.members) != want.pending || set.held != rack || set.placed != bound {
				t.Errorf("the segment of %s: %d to be placed, %d bound, most in %q, want %d, %d, %q", m.Name,
					len(set.members), set.placed, set.held, want.pending, bound, rack)
			}
		}
		var sizes []int
		for _, s := range segments {
			if s.pending > 0 {
				sizes = append(sizes, s.pending)
			}
		}
		root := got.all[0]
		if want := fewestWhole(sizes, need); root.least() != want || len(root.sets) != len(sizes) {
			t.Errorf("%d of %d segments have to be whole for %d members, want %d of %d", root.least(), len(root.sets), need,
				want, len(sizes))
		}
	})
}
