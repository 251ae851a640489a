package networktopology

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/podview"
)

// crowdNear names eight selectors that no other pod names and that select every pod.
func crowdNear(pod, edit int) string {
	items := make([]string, 8)
	for i := range items {
		items[i] = fmt.Sprintf("!none-%d-%d-%d", pod, edit, i)
	}
	return strings.Join(items, ";")
}

func crowd(pods int) listed {
	p := newListed("")
	for i := range pods {
		p.see(talker(fmt.Sprint("p", i), "a", "near", crowdNear(i, 0)))
	}
	return p
}

// TestSelectorsOfANamespaceAreBounded has a tenant name ever more selectors, and asks what others are told.
func TestSelectorsOfANamespaceAreBounded(t *testing.T) {
	t.Parallel()
	p := crowd(maxTerms)
	if n := len(p.spaces["default"].terms); n != maxTerms {
		t.Errorf("%d selectors are followed, want %d", n, maxTerms)
	}
	late := talker("late", "", "near", "app=cache")
	p.see(late)
	p.see(talker("cache", "b", "app", "cache"))
	if got := p.talks(late)["b"]; got != said.near {
		t.Errorf("a pod whose selector is not followed talks %d KiB an hour to the one that it selects, want %d", got,
			said.near)
	}
	near, _ := podview.PodNear(late)
	if links := len(p.relate(late, near, said).links); links != maxTerms+1 {
		t.Errorf("a pod that all select has %d links, want %d", links, maxTerms+1)
	}
	for _, m := range p.pods {
		p.lose(m.pod)
	}
	if len(p.pods)+len(p.spaces) != 0 {
		t.Errorf("%d pods and %d namespaces are left of pods that are gone", len(p.pods), len(p.spaces))
	}
}

// BenchmarkCrowdEdit is one edit of a pod in a namespace whose pods name eight selectors each that select all of them.
// Cycles wait for it.
//
//	go test ./pkg/plugins/networktopology -run xxx -bench Crowd -benchtime 100x
func BenchmarkCrowdEdit(b *testing.B) {
	for _, pods := range []int{100, 500, 5000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			p := crowd(pods)
			edited := make([]*v1.Pod, b.N)
			for i := range edited {
				edited[i] = talker("p0", "a", "near", crowdNear(0, i+1))
			}
			b.ResetTimer()
			for _, pod := range edited {
				p.see(pod)
			}
		})
	}
}
