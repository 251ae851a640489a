package evictor

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/gang"
)

func TestPreemptorsAreLookedAtInTurn(t *testing.T) {
	t.Parallel()
	var p Preempting
	refs := make([]gang.Ref, preemptorsAtOnce+2)
	for i := range refs {
		refs[i] = gang.Ref{UID: gang.UID(fmt.Sprint(i))}
		p.Add(refs[i])
	}
	last := len(refs) - 1
	if diff := cmp.Diff(refs[:preemptorsAtOnce], p.Next()); diff != "" {
		t.Errorf("first: %s", diff)
	}
	p.Drop(refs[0].UID)
	p.Drop("unknown")
	want := append([]gang.Ref{refs[last-1], refs[last]}, refs[1:preemptorsAtOnce-1]...)
	if diff := cmp.Diff(want, p.Next()); diff != "" {
		t.Errorf("second, without the one that was tried: %s", diff)
	}
	for _, ref := range refs {
		p.Drop(ref.UID)
	}
	if left := p.Next(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestNoMorePreemptorsAreHeldThanTheBound(t *testing.T) {
	t.Parallel()
	var p Preempting
	for i := range mostPreemptors + 1 {
		p.Add(gang.Ref{UID: gang.UID(fmt.Sprint(i))})
	}
	if len(p.pods) != mostPreemptors {
		t.Errorf("%d pods are held, want %d", len(p.pods), mostPreemptors)
	}
}

func TestThoseAreAwaitedThatWereEvictedAsLongAsTheyHaveTime(t *testing.T) {
	t.Parallel()
	var p Preempting
	now := time.Unix(0, 0)
	victim := func(uid string, seconds int64) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)},
			Spec: v1.PodSpec{NodeName: "n", TerminationGracePeriodSeconds: &seconds}}
	}
	p.Evicted("by", victim("early", 5), now)
	p.Add(gang.Ref{UID: "by"})
	if node, evicted := p.Awaited("by", now); node != "" || evicted != nil {
		t.Errorf("awaits %v on node %q before any is evicted", evicted, node)
	}
	p.Evicted("by", victim("a", 20), now)
	p.Evicted("by", victim("b", 5), now)
	p.Evicted("other", victim("c", 90), now)
	last := now.Add(20*time.Second + eviction.Grace)
	node, evicted := p.Awaited("by", last.Add(-1))
	var uids []gang.UID
	for _, pod := range evicted {
		uids = append(uids, pod.UID)
	}
	if diff := cmp.Diff([]gang.UID{"a", "b"}, uids); node != "n" || diff != "" {
		t.Errorf("node %q: %s", node, diff)
	}
	if node, _ := p.Awaited("by", last); node != "" {
		t.Errorf("pods are awaited that are late, on node %q", node)
	}
	p.Drop("by")
	if node, _ := p.Awaited("by", now); node != "" {
		t.Errorf("a pod that is not held awaits others on node %q", node)
	}
}
