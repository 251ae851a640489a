package advise

import (
	"fmt"
	"maps"
	"slices"

	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// mostTries is how many plans are tried for one unit.
const mostTries = 8

// Pending is a unit that waits and what would start it.
type Pending struct {
	Unit `json:"unit"`
	// Members is how many of its pods wait, and Needs how many of them have to start together.
	Members int `json:"members"`
	Needs   int `json:"needs"`
	// Priority of the unit.
	Priority int32 `json:"priority"`
	// Why is what the scheduler says of it.
	Why string `json:"why,omitempty"`
	// Plan starts it; absent if none was found.
	Plan *Plan `json:"plan,omitempty"`
	// Tried is how many plans were run.
	Tried int `json:"tried"`
	// Verdict is the answer in a sentence.
	Verdict string `json:"verdict"`
}

// Unit names a pod, or a gang that starts or moves as a whole.
type Unit struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (u Unit) String() string { return u.Kind + " " + u.Namespace + "/" + u.Name }

// Mark is the annotation of nodes that are emptied for the unit.
func (u Unit) Mark() string { return wellknown.CordonedFor(u.Kind, u.Namespace, u.Name) }

// Plan moves units, one after the other, while the nodes that they leave are cordoned, and then opens these again.
type Plan struct {
	// For is the unit that the plan starts; nothing for a node that is given back.
	For Unit `json:"-"`
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
	UID  string `json:"uid"`
	From string `json:"from"`
	To   string `json:"to"`
	// LostGPUMinutes are the minutes of a GPU that the move loses; 100 CPUs count as one GPU for pods without GPUs.
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

// losing says what the plan loses, nothing if it loses nothing.
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

// pending looks for a plan for each of the units, each in the cluster that the plans of those before it leave: these
// would take the room.
func (s *search) pending(units []*unit) error {
	now := s
	for i, u := range units {
		if i == s.Most {
			s.limit("%s of %d that wait were looked at", plural.Of(i, "unit"), len(units))
			return nil
		}
		p := Pending{Unit: nameOf(u), Members: len(u.Pods), Needs: u.Needs, Priority: u.Priority, Why: u.Why}
		switch {
		case u.Held != "":
			p.Verdict = "the scheduler does not try it: " + u.Held
		case s.over():
			s.limit("the time was over before %s could be looked at", u)
			p.Verdict = "not looked at"
		default:
			at := slices.IndexFunc(now.waiting, func(w *unit) bool { return nameOf(w) == nameOf(u) })
			if at < 0 {
				p.Verdict = "starts with the plans above"
				break
			}
			if err := now.plan(now.waiting[at], &p, i+1 < min(len(units), s.Most)); err != nil {
				return err
			}
		}
		s.advice.Pending = append(s.advice.Pending, p)
		if p.Plan != nil && now.then != nil {
			now = now.then
		}
	}
	return nil
}

func nameOf(u *unit) Unit { return Unit{u.Kind, u.Namespace, u.Name} }

// plan tries ways to make room, the cheapest first, until a run shows that one works. With goOn set, others follow that
// wait.
func (s *search) plan(u *unit, p *Pending, goOn bool) error {
	proposals := s.proposals[u]
	for _, rooms := range proposals {
		if s.over() || p.Tried == mostTries {
			s.limit("%s: %s were tried, and there are more", u, plural.Of(p.Tried, "plan"))
			break
		}
		p.Tried++
		s.say("%s: trying to move %s from %s", u, plural.Of(podsOf(rooms), "pod"), rooms[0].node)
		plan, err := s.prove(u, rooms, goOn)
		if err != nil {
			return err
		}
		if plan != nil {
			p.Plan = plan
			p.Verdict = fmt.Sprintf("starts when %s %s moved%s; no cheaper plan of those tried works",
				plural.Of(plan.pods(), "pod"), plural.Choose(plan.pods(), "is", "are"), plan.losing())
			return nil
		}
	}
	switch {
	case len(proposals) == 0:
		p.Verdict = "moving pods does not help: no node fits it once the pods are gone that may move and fit elsewhere"
	default:
		p.Verdict = fmt.Sprintf("none of %s that were tried starts it", plural.Of(p.Tried, "plan"))
	}
	return nil
}

// noteFixed says how many pods no plan moves, and why.
func (s *search) noteFixed() {
	count := map[string]int{}
	for _, units := range s.units {
		for _, u := range units {
			if u.Fixed != "" && !podview.BelongsToNode(u.Pods[0]) {
				count[u.Fixed] += len(u.Pods)
			}
		}
	}
	for _, why := range slices.Sorted(maps.Keys(count)) {
		s.advice.Notes = append(s.advice.Notes,
			fmt.Sprintf("%s may not move. Of each: %s", plural.Of(count[why], "pod"), why))
	}
}

// prove carries the plan out in memory. It returns nil if the unit does not start, or another pod is the worse for it.
func (s *search) prove(u *unit, rooms []room, goOn bool) (plan *Plan, err error) {
	units, candidate := unitsOf(rooms), &Plan{For: nameOf(u)}
	for _, r := range rooms {
		candidate.Cordon = append(candidate.Cordon, r.node)
	}
	err = s.try(s.Objects, func(w *world) (err error) {
		starts := func() (placed []Placement) {
			for _, pod := range u.Pods {
				if node := w.node(keyOf(pod)); node != "" {
					placed = append(placed, Placement{pod.Namespace, pod.Name, node})
				}
			}
			return placed
		}
		if why, err := s.carry(w, candidate, units, func() bool { return len(starts()) >= u.Needs }); why != "" ||
			err != nil {
			return err
		}
		for _, moved := range units {
			candidate.Moves = append(candidate.Moves, moveOf(moved, w))
		}
		candidate.Starts = starts()
		plan = candidate
		if goOn {
			s.then, err = s.next(w)
		}
		return err
	})
	return plan, err
}

// carry moves units, and opens the nodes that they leave when all of them have a place. It returns why what the plan is
// for does not start, or another pod is the worse for it; nothing if all is well.
func (s *search) carry(w *world, plan *Plan, units []*unit, started func() bool) (why string, err error) {
	for _, node := range plan.Cordon {
		if err := w.cordon(node, &plan.For); err != nil {
			return "", err
		}
	}
	for _, moved := range units {
		if ok, err := w.move(moved.names()); !ok || err != nil {
			return fmt.Sprintf("what replaces %s gets no node", moved), err
		}
	}
	for _, node := range plan.Cordon {
		if err := w.uncordon(node); err != nil {
			return "", err
		}
	}
	late := "the work that the plan is for does not start"
	if !w.rest(started) {
		return late, nil
	}
	w.rest(nil)
	for _, moved := range units {
		if !w.allBound(moved.names()) {
			return fmt.Sprintf("what replaces %s loses its node again", moved), nil
		}
	}
	switch lost := s.newlyLost(w); {
	case s.over():
		return "the time for the run was over", nil
	case !started():
		return late, nil
	case lost != "":
		return "the scheduler evicts pod " + lost, nil
	}
	return "", nil
}

// newlyLost is a pod that the scheduler has evicted and does not evict without the plan, empty if there is none.
func (s *search) newlyLost(w *world) string {
	lost := ""
	for name := range w.lost() {
		if !s.lost[name] && (lost == "" || name.String() < lost) {
			lost = name.String()
		}
	}
	return lost
}

func moveOf(u *unit, w *world) Move {
	m := Move{Unit: nameOf(u), Priority: u.Priority}
	for i, pod := range u.Pods {
		m.Pods = append(m.Pods, MovedPod{Name: pod.Name, UID: string(pod.UID), From: pod.Spec.NodeName,
			To: w.node(keyOf(pod)), LostGPUMinutes: float64(u.lost[i]) / 1000})
	}
	return m
}

// FirstPlan is the plan of the most important unit that has one, nil if there is none.
func (a *Advice) FirstPlan() (Unit, *Plan) {
	for _, p := range a.Pending {
		if p.Plan != nil {
			return p.Unit, p.Plan
		}
	}
	return Unit{}, nil
}
