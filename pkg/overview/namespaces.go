package overview

import (
	"cmp"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/price"
)

// addNamespaces adds the namespaces with pods.
func (b *Book) addNamespaces(c *Cluster, costs map[string]price.MicroDollars) {
	sums := map[string]*Namespace{}
	for _, p := range b.pods {
		if podview.Finished(p.pod) || podview.BelongsToNode(p.pod) {
			continue
		}
		n := sums[p.pod.Namespace]
		if n == nil {
			n = &Namespace{Name: p.pod.Namespace, MicroDollarsPerHour: costs[p.pod.Namespace]}
			sums[p.pod.Namespace] = n
		}
		if p.pod.Spec.NodeName == "" {
			n.PendingPods++
			n.PendingMilliGPU += p.milli
		} else {
			n.Pods++
			n.MilliGPU += p.milli
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		c.Namespaces = append(c.Namespaces, *sums[name])
	}
}

// Member is a pod of a gang.
type Member struct {
	Name string `json:"name"`
	// Rank is what its controller numbers it by, empty for none.
	Rank string `json:"rank"`
	// Node is empty while it has none.
	Node  string `json:"node"`
	Phase string `json:"phase"`
	// AgeSeconds is since it exists, and ScheduledSeconds since it has a node, 0 without one.
	AgeSeconds       float64 `json:"ageSeconds"`
	ScheduledSeconds float64 `json:"scheduledSeconds"`
	MilliGPU         int64   `json:"milliGPU"`
	// Reason says why it has no node, as the scheduler has said last.
	Reason string `json:"reason"`
}

// Members returns the pods of a gang by rank and name, and false if there is no such gang.
func (b *Book) Members(namespace, name string, now time.Time) ([]Member, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.gangs[gang.ID{Namespace: namespace, Name: name}]
	if g == nil {
		return nil, false
	}
	members := []Member{}
	for _, p := range g.members {
		m := Member{
			Name: p.pod.Name, Rank: gangview.Rank(p.pod), Node: p.pod.Spec.NodeName, Phase: string(p.pod.Status.Phase),
			MilliGPU:   p.milli,
			AgeSeconds: max(0, now.Sub(p.pod.CreationTimestamp.Time).Seconds()),
		}
		if m.Node == "" {
			m.Reason = podReason(p.pod)
		}
		for _, condition := range p.pod.Status.Conditions {
			if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionTrue {
				m.ScheduledSeconds = max(0, now.Sub(condition.LastTransitionTime.Time).Seconds())
			}
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(x, y Member) int {
		return cmp.Or(compareNames("rank-"+x.Rank, "rank-"+y.Rank), compareNames(x.Name, y.Name))
	})
	return members, true
}
