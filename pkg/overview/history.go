package overview

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/tables"
)

// History is what became of a gang so far, from the conditions of its PodGroup and of its pods. A condition keeps its
// last change only, and times are those of the API, in whole seconds.
type History struct {
	// Members by rank and name.
	Members []Member
	// Moments in the order in which they came.
	Moments []Moment
}

// Moment is when something became of a gang, and what.
type Moment struct {
	At          time.Time
	Name, Words string
}

// Member is a pod of a gang.
type Member struct {
	Name string
	// Rank is what its controller numbers it by, empty for none.
	Rank string
	// Node is empty while it has none.
	Node  string
	Phase string
	// Created is when it was; since Bound it has a node, since Ready it runs, and at Ended it had succeeded or failed.
	// The zero time is not known.
	Created, Bound, Ready, Ended time.Time
	MilliGPU                     int64
	// Reason says why it has no node, as the scheduler has said last, at Tried for the first time.
	Reason string
	Tried  time.Time
}

// History returns what became of a gang, and nil if there is no such gang.
func (b *Book) History(namespace, name string) *History {
	b.feed.mu.Lock()
	defer b.feed.mu.Unlock()
	g := b.gangs[gang.ID{Namespace: namespace, Name: name}]
	if g == nil {
		return nil
	}
	h := &History{Members: []Member{}}
	for _, p := range g.members {
		h.Members = append(h.Members, memberOf(p))
	}
	slices.SortFunc(h.Members, func(x, y Member) int {
		return cmp.Or(compareNames("rank-"+x.Rank, "rank-"+y.Rank), compareNames(x.Name, y.Name))
	})
	shown := Gang{}
	shown.describe(g)
	shown.count(g, &time.Time{})
	if g.group != nil {
		h.addGroup(g.group)
	}
	h.addMembers(shown.MinMember)
	h.Moments = slices.DeleteFunc(h.Moments, func(m Moment) bool { return m.At.IsZero() })
	slices.SortStableFunc(h.Moments, func(x, y Moment) int { return x.At.Compare(y.At) })
	return h
}

func memberOf(p *podEntry) Member {
	pod := p.pod
	m := Member{
		Name: pod.Name, Rank: gangview.Rank(pod), Node: pod.Spec.NodeName, Phase: string(pod.Status.Phase), MilliGPU: p.milli,
		Created: pod.CreationTimestamp.Time,
	}
	if m.Node == "" {
		m.Reason = podReason(pod)
	}
	for _, c := range pod.Status.Conditions {
		at, holds := c.LastTransitionTime.Time, c.Status == v1.ConditionTrue
		switch {
		case c.Type == v1.PodScheduled && holds:
			m.Bound = at
		case c.Type == v1.PodScheduled:
			m.Tried = at
		case c.Type == v1.PodReady && holds:
			m.Ready = at
		case c.Type == v1.PodReady && podview.Finished(pod):
			m.Ended = at
		}
	}
	return m
}

// addMembers adds what the members tell: when they came, when the scheduler first found no place for them, and when
// they were bound and ran.
func (h *History) addMembers(minimum int) {
	var created, tried, bound, ready []time.Time
	words := ""
	for i := range h.Members {
		m := &h.Members[i]
		created = append(created, m.Created)
		if !m.Tried.IsZero() {
			if tried = append(tried, m.Tried); words == "" {
				words = m.Reason
			}
		}
		if !m.Bound.IsZero() {
			bound = append(bound, m.Bound)
		}
		if !m.Ready.IsZero() {
			ready = append(ready, m.Ready)
		}
	}
	h.add("first pod", "the first pod is created", created, 1)
	h.add("complete", fmt.Sprintf("%s %s", plural.Of(minimum, "member"), plural.Choose(minimum, "exists", "exist")),
		created, minimum)
	h.add("plan", words, tried, 1)
	slices.SortFunc(bound, time.Time.Compare)
	words = fmt.Sprintf("%s bound, of %d that start together", plural.Of(len(bound), "member"), minimum)
	if len(bound) >= minimum {
		words = fmt.Sprintf("%s within %s", plural.Of(minimum, "member"), tables.Duration(bound[minimum-1].Sub(bound[0])))
	}
	h.add("bind", words, bound, 1)
	h.add("running", fmt.Sprintf("%s ready", plural.Of(minimum, "member")), ready, minimum)
}

// add adds when something was so of that many members.
func (h *History) add(name, words string, times []time.Time, number int) {
	if len(times) < number {
		return
	}
	slices.SortFunc(times, time.Time.Compare)
	h.Moments = append(h.Moments, Moment{times[number-1], name, words})
}

// addGroup adds what the PodGroup tells.
func (h *History) addGroup(group *schedulingv1alpha1.PodGroup) {
	h.Moments = append(h.Moments, Moment{group.CreationTimestamp.Time, "created", "the PodGroup is created"})
	for _, kind := range []struct{ condition, yes, no, words string }{
		{schedulingv1alpha1.PodGroupReserved, "reserve", "reservation ends", "no nodes are reserved any more"},
		{schedulingv1alpha1.PodGroupDegraded, "degraded", "", ""},
	} {
		c := meta.FindStatusCondition(group.Status.Conditions, kind.condition)
		switch {
		case c == nil:
		case c.Status == metav1.ConditionTrue:
			h.Moments = append(h.Moments, Moment{c.LastTransitionTime.Time, kind.yes, plainText(c.Message)})
		case kind.no != "":
			h.Moments = append(h.Moments, Moment{c.LastTransitionTime.Time, kind.no, kind.words})
		}
	}
}
