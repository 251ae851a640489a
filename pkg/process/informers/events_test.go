package informers_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/test/harness/assert"
)

func TestEventsAreToldOfOneType(t *testing.T) {
	t.Parallel()
	pod := func(name string) *v1.Pod { return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	var told []string
	name := func(p *v1.Pod) string {
		if p == nil {
			return "nothing"
		}
		return p.Name
	}
	events := informers.Events(
		func(before, now *v1.Pod) { told = append(told, name(before)+" becomes "+name(now)) },
		func(p *v1.Pod) { told = append(told, name(p)+" is gone") },
	)
	events.OnAdd(pod("a"), true)
	events.OnUpdate(pod("a"), pod("b"))
	events.OnUpdate(&v1.Node{}, &v1.Node{})
	events.OnDelete(pod("b"))
	events.OnDelete(cache.DeletedFinalStateUnknown{Obj: pod("c")})
	events.OnDelete(cache.DeletedFinalStateUnknown{Obj: &v1.Node{}})
	want := []string{"nothing becomes a", "a becomes b", "b is gone", "c is gone"}
	assert.Equal(t, "", want, told)
	informers.Events[*v1.Pod](nil, nil).OnAdd(pod("a"), false) // nothing listens
}
