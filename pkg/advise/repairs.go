package advise

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/faults"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/tables"
)

// Repair is a gang with members on failing hardware, and where their replacements would run.
type Repair struct {
	Unit `json:"unit"`
	// Why says what fails, a clause for each cause.
	Why []string `json:"why"`
	// Pods are the members; those whose replacement gets no node go nowhere. Empty if the scheduler evicts them.
	Pods []MovedPod `json:"pods"`
	// Verdict is the answer in a sentence.
	Verdict string `json:"verdict"`
}

// failing returns what fails under each pod with a node under which something does.
func (s *search) failing() map[key]string {
	nodes := map[string]faults.Node{}
	for _, node := range s.nodes {
		nodes[node.Name] = faults.ReadNode(node)
	}
	whys := map[key]string{}
	for _, pod := range s.pods {
		fault, known := nodes[pod.Spec.NodeName]
		if !known || podview.Finished(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		request, err := s.keys.PodGPURequest(pod)
		if err != nil {
			continue // the scheduler has no use for it either
		}
		if why := fault.Under(pod, request.Count); why != "" {
			whys[keyOf(pod)] = why
		}
	}
	return whys
}

// repairs looks for gangs with members on failing hardware, and moves these in one run, gang after gang.
func (s *search) repairs() error {
	whys := s.failing()
	if len(whys) == 0 || s.over() {
		return nil
	}
	s.say("moving members of gangs from failing hardware")
	return s.try(s.Objects, func(w *world) error {
		members := failingMembers(s.pods, w.gangs(), whys)
		for i, id := range slices.SortedFunc(maps.Keys(members), gang.ID.Compare) {
			if i == s.Most || s.over() {
				s.limit("%d of %d gangs with members on failing hardware were looked at", i, len(members))
				return nil
			}
			r, err := s.repair(w, id, members[id], whys)
			if err != nil {
				return err
			}
			s.advice.Repairs = append(s.advice.Repairs, *r)
		}
		return nil
	})
}

// failingMembers are the members of gangs on failing hardware, with those that can only be evicted with them.
func failingMembers(pods []*v1.Pod, gangOf func(*v1.Pod) membership, whys map[key]string) map[gang.ID][]*v1.Pod {
	type part struct {
		id   gang.ID
		with string
	}
	parts, members := map[part]bool{}, map[gang.ID][]*v1.Pod{}
	for _, pod := range pods {
		if m := gangOf(pod); whys[keyOf(pod)] != "" && m.with != "" {
			parts[part{m.id, m.with}] = true
		}
	}
	for _, pod := range pods {
		m := gangOf(pod)
		along := parts[part{m.id, m.with}] && pod.Spec.NodeName != "" && !podview.Finished(pod) &&
			pod.DeletionTimestamp == nil
		if m.id != noGang && (along || whys[keyOf(pod)] != "") {
			members[m.id] = append(members[m.id], pod)
		}
	}
	return members
}

// repair moves the members of one gang.
func (s *search) repair(w *world, id gang.ID, members []*v1.Pod, whys map[key]string) (*Repair, error) {
	u := &unit{Kind: KindPodGroup, Namespace: id.Namespace, Name: id.Name, Pods: members}
	u.worth = worthOf(u, w.losses())
	r := &Repair{Unit: nameOf(u)}
	for _, pod := range members {
		if why := whys[keyOf(pod)]; why != "" {
			r.Why = append(r.Why, why)
			continue
		}
		r.Why = append(r.Why, "others go along (disruptionMode: all)")
	}
	slices.Sort(r.Why)
	r.Why = slices.Compact(r.Why)
	if slices.ContainsFunc(u.names(), func(name key) bool { return s.lost[name] }) {
		r.Verdict = "the scheduler evicts them without help"
		return r, nil
	}
	moved, err := w.move(u.names())
	if err != nil {
		return nil, err
	}
	move := moveOf(u, w)
	r.Pods = move.Pods
	r.Verdict = fmt.Sprintf("%s can move%s", plural.Of(len(members), "member"), (&Plan{Moves: []Move{move}}).losing())
	if !moved {
		r.Verdict = "not all replacements get a node beside the rest of the gang"
	}
	return r, nil
}

func (a *Advice) writeRepairs(b *strings.Builder, screen tables.Screen) {
	if len(a.Repairs) == 0 {
		return
	}
	b.WriteString("\nMembers of gangs on failing hardware\n")
	for _, r := range a.Repairs {
		fmt.Fprintf(b, "  %s: %s; %s\n", r.Unit, strings.Join(r.Why, "; "), r.Verdict)
		b.WriteString((&Plan{Moves: []Move{{Unit: r.Unit, Pods: r.Pods}}}).table(screen))
	}
}
