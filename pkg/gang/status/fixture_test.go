package status

import (
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
