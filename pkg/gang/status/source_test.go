package status

import (
	"strings"
	"testing"
	"time"

	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/sla"
)

// newSource has no gangs but those that pods name, and schedules pods that name the scheduler "ours".
func newSource(classes *sla.Order, pods cache.Indexer) Source {
	s := Source{Ledger: gang.NewLedger(time.Minute, nil), Profiles: &process.Profiles{}, Classes: classes,
		Members: &members.Directory{Policy: &read.OwnerPolicy{CorePlansNative: true},
			Lister: corelisters.NewPodLister(pods), Groups: cache.NewStore(cache.MetaNamespaceKeyFunc)}}
	s.Members.Ledger = s.Ledger
	s.Profiles.Add(named{name: "ours"})
	return s
}

func newPods() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// named is a profile that is asked only for its name.
type named struct {
	framework.Framework
	name string
}

func (n named) ProfileName() string { return n.name }

func TestAReservationIsNewsOnce(t *testing.T) {
	t.Parallel()
	a, b := gang.ID{Namespace: "n", Name: "a"}, gang.ID{Namespace: "n", Name: "b"}
	c := New(Source{})
	saidOf := func(id gang.ID) string {
		r := c.reservationOf(id)
		return strings.TrimSpace(r.Message + " " + strings.Join(r.Nodes, ","))
	}
	for _, step := range []struct {
		id           gang.ID
		words        string
		nodes        []string
		news         bool
		saysA, saysB string
	}{
		{a, "", nil, false, "", ""}, {a, "one", []string{"x"}, true, "one x", ""},
		{a, "one", []string{"x"}, false, "one x", ""}, {a, "one", []string{"y"}, true, "one y", ""},
		{a, "", nil, true, "", ""}, {b, "two", []string{"x", "y"}, true, "", "two x,y"}, {b, "", nil, true, "", ""},
		{b, "", nil, false, "", ""},
	} {
		if news := c.Reserve(Reservation{Of: step.id, Message: step.words, Nodes: step.nodes}); news != step.news ||
			saidOf(a) != step.saysA || saidOf(b) != step.saysB {
			t.Errorf("%s %q on %v: news %v, said of a %q and of b %q", step.id, step.words, step.nodes, news, saidOf(a),
				saidOf(b))
		}
	}
}
