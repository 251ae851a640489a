package advise

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
)

// mostTries is how many plans are tried for one unit.
const mostTries = 8

// Pending is a pending unit with a plan that would start it.
type Pending struct {
	Unit `json:"unit"`
	// Members is how many of its pods wait, and Needs how many of them have to start together.
	Members int `json:"members"`
	Needs   int `json:"needs"`
	// Priority of the unit.
	Priority int32 `json:"priority"`
	// Why is the scheduler's message about it.
	Why string `json:"why,omitempty"`
	// Plan starts it; absent if none was found.
	Plan *Plan `json:"plan,omitempty"`
	// Tried is how many plans were run.
	Tried int `json:"tried"`
	// Verdict is the answer in a sentence.
	Verdict string `json:"verdict"`
}

// Unit names a pod, which stands for all that are equal to it, or a gang that starts or moves as a whole.
type Unit struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (u Unit) String() string { return u.Kind + " " + u.Namespace + "/" + u.Name }

// Plan moves units, one after the other, while the nodes that they leave are cordoned, and then opens these again.
type Plan struct {
	// Cordon are the nodes that are closed for as long as pods move.
	Cordon []string `json:"cordon"`
	Moves  []Move   `json:"moves"`
	// Starts are the pods that start, where no other pod does.
	Starts []Placement `json:"starts"`
}

// Move evicts the pods of a unit.
type Move struct {
	Unit     `json:"unit"`
	Priority int32      `json:"priority"`
	Pods     []MovedPod `json:"pods"`
}

// MovedPod is a pod that is evicted, and where its replacement went in the run.
type MovedPod struct {
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
	// LostGPUMinutes is the work that the move loses; for pods without GPUs, 100 CPUs count as one GPU.
	LostGPUMinutes float64 `json:"lostGPUMinutes"`
}

// Placement is a pod on a node.
type Placement struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node"`
}

// pods is how many pods the plan moves.
func (p *Plan) pods() int {
	n := 0
	for _, m := range p.Moves {
		n += len(m.Pods)
	}
	return n
}

// losing is a clause on the work that the plan loses, empty if it loses none.
func (p *Plan) losing() string {
	minutes := 0.0
	for _, m := range p.Moves {
		for _, pod := range m.Pods {
			minutes += pod.LostGPUMinutes
		}
	}
	if minutes == 0 {
		return ""
	}
	return fmt.Sprintf(", which loses %.1f GPU hours of work", minutes/60)
}

// pending looks for a plan for each of the units, in the cluster after the plans of the units before it.
func (s *search) pending(units []*unit) error {
	now := s
	for i, u := range units {
		if i == s.Most {
			s.limit("%s of %d that wait were looked at", plural.Of(i, "unit"), len(units))
			return nil
		}
		p := Pending{Unit: u.Unit, Members: len(u.Pods), Needs: u.Needs, Priority: u.Priority, Why: u.Why}
		switch {
		case u.Untried != "":
			p.Verdict = "the scheduler does not try it: " + u.Untried
		default:
			at := slices.IndexFunc(now.waiting, u.shares)
			if at < 0 {
				p.Verdict = "starts with the plans above"
				break
			}
			if err := now.plan(now.waiting[at], &p, i+1 < min(len(units), s.Most)); err != nil {
				return err
			}
		}
		if len(u.Pods) > 1 && u.Kind == KindPod && p.Plan == nil {
			p.Verdict += fmt.Sprintf("; the same is true of all %d equal pods", len(u.Pods))
		}
		s.advice.Pending = append(s.advice.Pending, p)
		if p.Plan != nil && now.then != nil {
			now = now.then
		}
	}
	return nil
}

// shares reports whether the units have a pod in common.
func (u *unit) shares(other *unit) bool {
	return slices.ContainsFunc(u.Pods, func(pod *v1.Pod) bool {
		return slices.ContainsFunc(other.Pods, func(p *v1.Pod) bool { return keyOf(p) == keyOf(pod) })
	})
}

// plan tries plans until a run shows that one works. Pods that could not move in one plan stay in the next. With goOn
// set, it keeps the cluster that the plan leaves, for the next unit.
func (s *search) plan(u *unit, p *Pending, goOn bool) error {
	stay, tries := map[key]bool{}, 0
	for ; tries < mostTries; tries++ {
		evicted, on, err := s.makeWay(u, stay)
		switch {
		case err != nil:
			return err
		case len(evicted) == 0 && len(on) > 0:
			p.Verdict = "moving pods does not help: enough is free, and a reservation or more important work keeps it waiting"
			return nil
		case len(evicted) == 0 && tries == 0:
			p.Verdict = "moving pods does not help: it does not start even if every movable pod is evicted"
			return nil
		case len(evicted) == 0 && p.Tried == 0:
			p.Verdict = "moving pods does not help: PodDisruptionBudgets do not allow all that have to move"
			return nil
		case len(evicted) == 0:
			p.Verdict = noneWorks(p.Tried)
			return nil
		}
		inTheWay := s.overBudget(evicted)
		if len(inTheWay) == 0 {
			s.say("%s: trying to move %s from %s", u, plural.Of(len(evicted), "pod"), evicted[0].Spec.NodeName)
			p.Tried++
			if p.Plan, inTheWay, err = s.prove(u, evicted, on, goOn); err != nil {
				return err
			}
		}
		if p.Plan != nil {
			p.Verdict = fmt.Sprintf("%sstarts when %s %s moved%s; no cheaper plan of those tried works", u.alike(),
				plural.Of(len(evicted), "pod"), plural.Choose(len(evicted), "is", "are"), p.Plan.losing())
			return nil
		}
		for _, pod := range inTheWay {
			stay[keyOf(pod.Pod)] = true
		}
	}
	s.limit("%s: %s were tried, and there are more", u, plural.Of(p.Tried, "plan"))
	p.Verdict = noneWorks(p.Tried)
	return nil
}

func noneWorks(tried int) string {
	return fmt.Sprintf("tried %s; none starts it", plural.Of(tried, "plan"))
}

// noteFixed adds notes on the pods that may not move, and why.
func (s *search) noteFixed() {
	count := map[string]int{}
	for _, pod := range s.running {
		if pod.fixed != "" && !podview.BelongsToNode(pod.Pod) {
			count[pod.fixed]++
		}
	}
	for _, why := range slices.Sorted(maps.Keys(count)) {
		s.advice.Notes = append(s.advice.Notes,
			fmt.Sprintf("%s may not move. Of each: %s", plural.Of(count[why], "pod"), why))
	}
}

// prove runs the plan in memory, in each order of ties, with the nodes cordoned on which the unit is to start. If it
// fails, inTheWay are the pods that must not move next time: those that found no other node, or all of them if there
// was another reason.
func (s *search) prove(u *unit, pods []*runningPod, on []string, goOn bool) (plan *Plan, inTheWay []*runningPod,
	err error) {
	moves := movesOf(pods)
	err = s.tryTies(s.Objects, func(w *world) (bool, error) {
		works, err := s.run(w, on, moves, func() bool { return len(w.placed(u)) >= u.Needs })
		if err != nil {
			return false, err
		}
		if !works {
			plan = nil
			inTheWay = slices.DeleteFunc(slices.Clone(pods), func(p *runningPod) bool { return w.node(keyOf(p.Pod)) != "" })
			if len(inTheWay) == 0 {
				inTheWay = pods
			}
			return false, nil
		}
		if plan != nil {
			return true, nil
		}
		plan = &Plan{Cordon: on, Starts: w.placed(u)}
		for _, m := range moves {
			plan.Moves = append(plan.Moves, m.in(w))
		}
		if goOn {
			s.then = s.next(w)
		}
		return true, nil
	})
	return plan, inTheWay, err
}

// run moves pods while nodes are cordoned. It reports whether the unit then starts without harm to other pods.
// Meanwhile replacements may be pending: other nodes may be reserved for the unit.
func (s *search) run(w *world, nodes []string, moves []*move, started func() bool) (bool, error) {
	for _, node := range nodes {
		if err := w.cordon(node, true); err != nil {
			return false, err
		}
	}
	for _, m := range moves {
		if _, err := w.move(m.names()); err != nil {
			return false, err
		}
	}
	for _, node := range nodes {
		if err := w.cordon(node, false); err != nil {
			return false, err
		}
	}
	if !w.rest(started) {
		return false, nil
	}
	w.rest(nil)
	displaced := slices.ContainsFunc(moves, func(m *move) bool { return !w.allBound(m.names()) })
	return started() && !displaced && s.newlyLost(w) == "", nil
}

// newlyLost is a pod that the scheduler evicts only because of the plan, empty if there is none.
func (s *search) newlyLost(w *world) string {
	lost := ""
	for name := range w.Evicted() {
		if !s.lost[name] && (lost == "" || name.String() < lost) {
			lost = name.String()
		}
	}
	return lost
}
