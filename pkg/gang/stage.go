package gang

// stage is where a member is on its way to a node. What the API server shows of a member is its State; a stage is what
// this scheduler alone knows of one that is still pending there.
type stage uint8

const (
	// unqueued members are kept out of the scheduling queue and have to be activated when they may go on.
	unqueued stage = iota
	// queued members have been let into the queue; their next cycle asks what it is for.
	queued
	// alone members are being scheduled as ordinary pods, outside any plan, and have no assignment yet.
	alone
	// preparing members hold their assignment in memory and write what siblings depend on, such as a claim that they
	// share.
	preparing
	// reserved members hold their assignment in memory, and may still be turned away before they have to wait for their
	// siblings.
	reserved
	// assigned members hold their assignment in memory and wait for nothing but their siblings.
	assigned
	// released members hold their assignment in memory and are being bound.
	released
	// done members have a node, have ended, are going away, or carry gates of their own.
	done
	stages
)

// occurrence is what happens to a member.
type occurrence uint8

const (
	// isLet: it may enter the queue. isDenied: it may not, or may not proceed.
	isLet occurrence = iota
	isDenied
	// goesAlone: its cycle is that of an ordinary pod.
	goesAlone
	// reserves: it holds its assignment. reservesFirst: siblings depend on it, and follow before all hold theirs.
	reserves
	reservesFirst
	// isPermitted: only its siblings keep it waiting. isPrepared: what siblings depend on has been written.
	isPermitted
	isPrepared
	// isReleased: it need not wait for siblings any longer.
	isReleased
	// givesBack: it holds its assignment no longer and has no node.
	givesBack
	// isPending, isPlaced: the API server shows it as such.
	isPending
	isPlaced
	occurrences
)

// stageTable holds the stage that follows, by stage and occurrence. What is left out of a row leaves the stage as it
// is.
var stageTable = [stages]map[occurrence]stage{
	unqueued:  {isLet: queued, reserves: reserved, reservesFirst: preparing, isPlaced: done},
	queued:    {isDenied: unqueued, goesAlone: alone, reserves: reserved, reservesFirst: preparing, isPlaced: done},
	alone:     {isDenied: unqueued, isLet: queued, reserves: released, isPlaced: done},
	preparing: {isPrepared: assigned, isReleased: released, givesBack: unqueued, isPlaced: done},
	reserved:  {isPermitted: assigned, isReleased: released, givesBack: unqueued, isPlaced: done},
	assigned:  {isReleased: released, givesBack: unqueued, isPlaced: done},
	released:  {givesBack: unqueued, isPlaced: done},
	done:      {isPending: unqueued},
}

// holds reports whether a member at this stage holds an assignment in memory.
func (s stage) holds() bool { return s == preparing || s == reserved || s == assigned || s == released }

// ready reports whether a member at this stage can be bound as soon as its siblings can.
func (s stage) ready() bool { return s == assigned || s == released }

// waits reports whether a member at this stage holds an assignment that can still be asked back.
func (s stage) waits() bool { return s == preparing || s == reserved || s == assigned }

// move changes the member's stage by what happened to it. It is the only place that does.
func (m *member) move(o occurrence) {
	to, listed := stageTable[m.stage][o]
	if !listed {
		return
	}
	switch before, after := m.stage.holds(), to.holds(); {
	case after && !before:
		m.group.holding++
	case before && !after:
		m.group.holding--
	}
	p := m.group.plan
	counted := m.stage.ready() != to.ready() && p.node(m) != ""
	if counted {
		p.count(m, -1)
	}
	m.stage = to
	if counted {
		p.count(m, 1)
	}
	include(m.group.unqueued, m, true, to == unqueued)
}
