package retry

import (
	"slices"
	"sync"
	"time"

	"berth.dev/berth/pkg/gang"
)

const (
	// paceBurst is how much planning a namespace may have before its gangs plan one at a time. It is worn off at half
	// the speed of the clock: a namespace whose plans take less than half of the time is not held back.
	paceBurst = 100 * time.Millisecond
	// paceMost bounds what is remembered, so that the gangs of a namespace are free again soon after its last long plan.
	paceMost = time.Second
	// paceShort is the length of a plan that delays no other, by the mean of the last few of a namespace.
	paceShort = 10 * time.Millisecond
	// pacePatience is how long others wait for the gang whose turn it is.
	pacePatience = time.Second
)

// Pace decides which gangs plan next where plans take long. Every plan is made in a scheduling cycle, and while a
// hundred new gangs plan, no other pod is scheduled. So the gangs of a namespace whose plans have lately taken much
// time stand in line. Of all that stand in line one plans at a time, after a rest that is half as long as the last
// plan; namespaces take turns. Gangs of other namespaces are not held back.
//
// The zero Pace is ready for use. It is safe for concurrent use.
type Pace struct {
	mu    sync.Mutex
	lanes map[string]*lane
	// order is the namespaces with a lane in the order of their turns.
	order []string
	// turn is the gang that was given the turn last and has not planned yet, until turnUntil. From then on others are
	// given it.
	turn      gang.ID
	turnUntil time.Time
	restUntil time.Time
}

// lane is what is known of a namespace.
type lane struct {
	// debt is the time that planning took, as far as it was not worn off at that time.
	debt time.Duration
	at   time.Time
	// typical is a mean of the time that the last plans took.
	typical time.Duration
	// slow is set from when the debt has become too large until it is worn off and no gang whose plan may be long
	// stands in line.
	slow bool
	// line holds the gangs that wait for their turn, queued those that are in it: true for those that were recalled,
	// which come first.
	line   []gang.ID
	queued map[gang.ID]bool
	// given are the gangs that were given the turn and have not planned yet. Their pods may be long on their way
	// through the queue.
	given map[gang.ID]bool
}

func (l *lane) owes(now time.Time) time.Duration {
	return max(0, l.debt-now.Sub(l.at)/2)
}

// Ran records that the gang has planned for that time.
func (p *Pace) Ran(id gang.ID, took time.Duration, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn == id {
		p.turn = gang.ID{}
	}
	l := p.lanes[id.Namespace]
	if l == nil {
		l = &lane{at: now, queued: map[gang.ID]bool{}, given: map[gang.ID]bool{}}
		if p.lanes == nil {
			p.lanes = map[string]*lane{}
		}
		p.lanes[id.Namespace] = l
		p.order = append(p.order, id.Namespace)
	}
	delete(l.given, id)
	l.debt, l.at, l.typical = min(l.owes(now)+took, paceMost), now, (3*l.typical+took)/4
	l.slow = l.slow || l.debt >= paceBurst
	if l.slow {
		p.restUntil = now.Add(took / 2)
	}
	p.tidy(now)
}

// Admit reports whether the gang may plan in the cycle that it has. If not it has to stand in line again.
func (p *Pace) Admit(id gang.ID, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tidy(now)
	l := p.lanes[id.Namespace]
	if l == nil || !l.slow {
		return true
	}
	// Another may have planned since the turn was given.
	ok := l.given[id] && !now.Before(p.restUntil)
	delete(l.given, id)
	if !ok && p.turn == id {
		p.turn = gang.ID{}
	}
	return ok
}

// Hold puts a gang that is to plan in line if it has to wait for its turn, and reports whether it has. Next gives it
// then.
func (p *Pace) Hold(id gang.ID, now time.Time) bool { return p.hold(id, false, now) }

// Recall does the same for a gang whose plan failed and that can act now on what was found for it since. It stands
// before those that have not planned yet: what was found does not stay true for long.
func (p *Pace) Recall(id gang.ID, now time.Time) bool { return p.hold(id, true, now) }

func (p *Pace) hold(id gang.ID, recalled bool, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tidy(now)
	l := p.lanes[id.Namespace]
	if l == nil || !l.slow {
		return false
	}
	before, queued := l.queued[id]
	if queued && (before || !recalled) {
		return true
	}
	if queued {
		l.leave(id)
	}
	at := len(l.line)
	if recalled {
		if behind := slices.IndexFunc(l.line, func(other gang.ID) bool { return !l.queued[other] }); behind >= 0 {
			at = behind
		}
	}
	l.line, l.queued[id] = slices.Insert(l.line, at, id), recalled
	return true
}

// leave takes a gang out of the line.
func (l *lane) leave(id gang.ID) {
	delete(l.queued, id)
	l.line = slices.DeleteFunc(l.line, func(other gang.ID) bool { return other == id })
}

// Next returns the gang whose turn it is to plan. Without one, wait is after what time to ask again, 0 if none stands
// in line.
func (p *Pace) Next(now time.Time) (id gang.ID, ok bool, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tidy(now)
	wait = max(p.restUntil.Sub(now), 0)
	if p.turn != (gang.ID{}) {
		wait = max(wait, p.turnUntil.Sub(now))
	}
	next := time.Duration(0)
	for i, namespace := range p.order {
		l := p.lanes[namespace]
		if len(l.line) == 0 {
			continue
		}
		if l.slow && wait > 0 {
			next = wait
			continue
		}
		id = l.line[0]
		l.line = l.line[1:]
		delete(l.queued, id)
		if l.slow {
			p.turn, p.turnUntil, l.given[id] = id, now.Add(pacePatience), true
			p.order = append(slices.Delete(p.order, i, i+1), namespace)
		}
		return id, true, 0
	}
	return gang.ID{}, false, next
}

// Forget records that the gang is not going to plan: it has started, is gone or cannot be tried.
func (p *Pace) Forget(id gang.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn == id {
		p.turn = gang.ID{}
	}
	if l := p.lanes[id.Namespace]; l != nil {
		delete(l.given, id)
		l.leave(id)
	}
}

// tidy ends a turn that was not taken, and forgets namespaces that owe nothing.
func (p *Pace) tidy(now time.Time) {
	if p.turn != (gang.ID{}) && !now.Before(p.turnUntil) {
		p.turn = gang.ID{}
	}
	p.order = slices.DeleteFunc(p.order, func(namespace string) bool {
		l := p.lanes[namespace]
		if l.owes(now) > 0 {
			return false
		}
		l.slow = l.slow && len(l.line) > 0 && l.typical >= paceShort
		if len(l.line) > 0 {
			return false
		}
		delete(p.lanes, namespace)
		return true
	})
}
