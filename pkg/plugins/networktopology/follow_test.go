package networktopology

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/gangview"
)

// listed are peers with the informer's store, which has each pod before they are told of it.
type listed struct {
	*peers
	store map[types.UID]*v1.Pod
}

func newListed(appLabel string) listed {
	l := listed{store: map[types.UID]*v1.Pod{}}
	l.peers = newPeers(&gangview.Gangs{}, appLabel, func(namespace string) []*v1.Pod {
		var pods []*v1.Pod
		for _, pod := range l.store {
			if pod.Namespace == namespace {
				pods = append(pods, pod)
			}
		}
		return pods
	})
	return l
}

func (l listed) see(pod *v1.Pod) {
	l.store[pod.UID] = pod
	l.peers.see(pod)
}

func (l listed) lose(pod *v1.Pod) {
	delete(l.store, pod.UID)
	l.peers.lose(pod)
}

// left is how much is kept.
func (p *peers) left() int { return len(p.pods) + len(p.groups) + len(p.spaces) + len(p.assumed) }

// Most pods belong to nothing. They count all the same for a pod that comes later and names them.
func TestPodsAreFollowedOnceTheyMayBeNamed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		known bool
		do    func(listed, map[string]*v1.Pod)
		want  map[string]int64
	}{
		"a pod that names them":               {known: true, want: map[string]int64{"a": 20, "b": 20, "c": 20}},
		"a pod of a manifest that names them": {want: map[string]int64{"a": 20, "b": 20, "c": 20}},
		"one is bound": {known: true, do: func(p listed, pods map[string]*v1.Pod) {
			p.see(talker("reserved", "b", "app", "web"))
			p.release("reserved")
		}, want: map[string]int64{"a": 20, "b": 20, "c": 20}},
		"one was not bound after all, and is nominated elsewhere": {known: true,
			do:   func(p listed, pods map[string]*v1.Pod) { p.release("reserved") },
			want: map[string]int64{"a": 40, "c": 20}},
		"one is gone": {known: true, do: func(p listed, pods map[string]*v1.Pod) { p.lose(pods["running"]) },
			want: map[string]int64{"b": 30, "c": 30}},
	} {
		p := newListed("")
		pods := map[string]*v1.Pod{"running": talker("running", "a", "app", "web"),
			"bound": talker("bound", "", "app", "web"), "reserved": talker("reserved", "", "app", "web"),
			"released": talker("released", "", "app", "web"),
			"ended":    talker("ended", "a", "app", "web"), "asker": talker("asker", "", "near", "app=web")}
		pods["reserved"].Status.NominatedNodeName = "a"
		for _, pod := range []string{"running", "bound", "reserved", "released"} {
			p.see(pods[pod])
			p.assume(pods[pod], "b")
		}
		p.release("released")
		p.see(pods["running"])
		p.see(talker("bound", "c", "app", "web"))
		p.see(talker("foreign", "a"))
		pods["ended"].Status.Phase = v1.PodSucceeded
		p.store["ended"] = pods["ended"]
		if got := p.left(); got != 1 {
			t.Errorf("%s: %d entries are kept before, want one of the pod that is reserved", name, got)
		}
		if test.known {
			p.see(pods["asker"])
		}
		if test.do != nil {
			p.talks(pods["asker"])
			test.do(p, pods)
		}
		if diff := cmp.Diff(test.want, p.talks(pods["asker"])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, pod := range p.store {
			p.lose(pod)
		}
		if p.left() != 0 {
			t.Errorf("%s: left of pods that are gone: %+v", name, p.peers)
		}
	}
}
