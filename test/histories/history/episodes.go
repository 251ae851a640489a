package history

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What happens to gangs and nodes in several steps that belong together. Single steps would seldom meet so.

// mostNeeding bounds the gangs that need a node. Where there are many larger nodes they would have a hundred members.
const mostNeeding = 12

// another makes a pod like p, and says its name.
func (g *generator) another(p Pod, after time.Duration) Pod {
	p.Name = fmt.Sprintf("p%d", len(g.pods))
	g.keep(&p)
	g.add(Step{Do: CreatePod, Pod: &p, After: metav1.Duration{Duration: after}})
	return p
}

// soon is the time between steps that one controller takes in a row.
func (g *generator) soon() time.Duration {
	return time.Duration(1+g.random.IntN(20)) * time.Millisecond
}

// rerun takes all members of a gang away and makes others, as a Job does that runs again under its name, often when all
// have ended. Others may be faster, and the last members may come late or never.
func (g *generator) rerun(gang string) {
	members := g.members[gang]
	if len(members) > 0 && members[0].Job && g.jobs.IntN(2) == 0 {
		g.replace(gang)
	}
	for i := range members {
		g.add(Step{Do: DeletePod, Name: members[i].Name, After: metav1.Duration{Duration: time.Millisecond}})
	}
	pause := g.after()
	if g.one(1, 2) {
		pause = 31 * time.Second // no pod takes longer to end than 30
	}
	if len(members) > 0 && g.one(1, 2) {
		g.burst(1 + g.random.IntN(4))
	}
	late := -1
	if g.one(1, 3) {
		late = g.random.IntN(len(members) + 1)
	}
	for i := range members {
		after := g.soon()
		switch {
		case i == late && g.one(1, 3):
			return
		case i == 0:
			after = pause
		case i == late:
			after = g.after()
		}
		members[i] = g.another(members[i], after)
	}
}

// replace deletes a Job and makes another of its name, as a user does who changes its template.
func (g *generator) replace(gang string) {
	at := slices.IndexFunc(g.out.Steps, func(s Step) bool { return s.Gang != nil && s.Gang.Name == gang })
	g.add(Step{Do: DeleteGang, Name: gang, After: metav1.Duration{Duration: time.Millisecond}})
	g.add(Step{Do: CreateGang, Gang: g.out.Steps[at].Gang, After: metav1.Duration{Duration: time.Millisecond}})
}

// roll replaces the members of a gang one by one, often where others want the places that they leave.
func (g *generator) roll(gang string) {
	if g.one(1, 2) {
		g.rivals(gang)
	}
	members := g.members[gang]
	pause := g.pick(0, 0, 1)
	for i := range members {
		g.add(Step{Do: DeletePod, Name: members[i].Name, After: metav1.Duration{Duration: g.soon()}})
		after := g.soon()
		if pause > 0 {
			after = g.after()
		}
		members[i] = g.another(members[i], after)
	}
}

// rivals makes pods like the members of a gang, or a gang of them, that want the same places.
func (g *generator) rivals(gang string) {
	members := g.members[gang]
	if len(members) == 0 {
		return
	}
	like := members[g.random.IntN(len(members))]
	like.Gang, like.Job, like.Role, like.MinAvailable, like.Near, like.Gated = "", false, "", 0, false, false
	if g.one(1, 4) {
		g.gangOf(&like, 1+g.random.IntN(6))
		return
	}
	for range 1 + g.random.IntN(4) {
		g.another(like, g.soon())
	}
}

// reinforce makes more members of a gang.
func (g *generator) reinforce(gang string) {
	members := g.members[gang]
	if len(members) == 0 {
		return
	}
	for range 1 + g.random.IntN(2) {
		g.members[gang] = append(g.members[gang], g.another(members[g.random.IntN(len(members))], g.soon()))
	}
}

// contest lets others come for the places of a gang while it is being bound. There is one for each of its members: the
// port of a node. Most pods keep it until the end.
func (g *generator) contest() {
	like := g.pod()
	g.forgetLast(like)
	*like = Pod{MilliCPU: 100, MemGiB: 1, Port: true, Tolerates: true, EndsSeconds: int64(g.pick(0, 0, 0, 30))}
	name := g.gangOf(like, max(1, len(g.nodes)-g.pick(0, 0, 1)))
	rival := *like
	after := time.Duration(100+g.random.IntN(900)) * time.Millisecond
	for range 1 + len(g.members[name])/2 {
		g.another(rival, after)
		after = g.soon()
	}
}

// interrupt restarts the scheduler while a gang starts, often where its plan does not hold any more.
func (g *generator) interrupt() {
	like := g.pod()
	g.forgetLast(like)
	gang := g.gangOf(like, 1+g.random.IntN(6))
	node := g.name(g.nodes)
	shut := g.one(1, 2)
	if shut {
		g.add(Step{Do: CordonNode, Name: node, After: metav1.Duration{Duration: g.soon()}})
	}
	g.add(Step{Do: Restart, Down: metav1.Duration{Duration: g.soon()}, After: metav1.Duration{Duration: g.soon()}})
	if g.one(1, 3) {
		g.rivals(gang)
	}
	if shut && g.one(1, 2) {
		g.add(Step{Do: OpenNode, Name: node})
	}
}

// fill takes most of the CPUs, or of the GPUs, of most nodes.
func (g *generator) fill() {
	back, ends := g.one(1, 4), int64(g.pick(0, 0, 5, 30))
	for _, name := range g.nodes {
		node, parts := g.made[name], g.pick(1, 1, 2, 3)
		if g.one(1, 5) {
			continue
		}
		p := Pod{
			MilliCPU: node.CPUs*1000/int64(parts) - int64(g.pick(0, 0, 100, 500)), MemGiB: 1, Zone: node.Zone, Tolerates: true,
			Priority: int32(g.pick(0, 0, 0, 100)), Returns: back, EndsSeconds: ends, //nolint:gosec // small
		}
		if node.GPUs >= parts && node.Mode != ClaimedMode && g.one(1, 2) {
			p.MilliCPU, p.GPUs = 100, node.GPUs/parts
		}
		for range parts {
			g.another(p, time.Microsecond)
		}
	}
}

// contend lets an important gang come to a full cluster. It may change its mind while others make way for it.
func (g *generator) contend() {
	g.fill()
	like := g.pod()
	g.forgetLast(like)
	like.Priority, like.Gated = 1000, false
	name := g.gangOf(like, 1+g.random.IntN(6))
	members := g.members[name]
	after := metav1.Duration{Duration: g.after()}
	switch g.random.IntN(6) {
	case 0:
		g.add(Step{Do: DeleteGang, Name: name, After: after})
	case 1:
		g.add(Step{Do: ScaleGang, Name: name, Count: 1 + g.random.IntN(8), After: after})
	case 2:
		for i := range members {
			g.add(Step{Do: DeletePod, Name: members[i].Name, After: after})
			after = metav1.Duration{Duration: time.Millisecond}
			if g.one(1, 3) {
				break
			}
		}
	case 3:
		g.add(Step{Do: Restart, Down: metav1.Duration{Duration: g.soon()}, After: after})
	case 4:
		g.add(Step{Do: MoveToGang, Name: g.name(g.pods), After: after})
	}
	if g.one(1, 2) {
		g.rivals(name)
	}
}

// degrade takes members of a gang away and makes fewer in their place, often around a restart of the scheduler.
func (g *generator) degrade(gang string) {
	members := g.members[gang]
	if len(members) < 2 {
		return
	}
	gone := 1 + g.random.IntN(len(members)-1)
	for i := range gone {
		g.add(Step{Do: DeletePod, Name: members[i].Name, After: metav1.Duration{Duration: g.soon()}})
	}
	if g.one(2, 3) {
		g.add(Step{Do: Restart, Down: metav1.Duration{Duration: g.soon()}})
	}
	for i := range g.random.IntN(gone + 1) {
		members[i] = g.another(members[i], g.soon())
	}
}

// arrive adds a node, often one that takes no pods before it is ready.
func (g *generator) arrive() {
	node := *g.node()
	node.Tainted = g.one(1, 2)
	g.add(Step{Do: AddNode, Node: &node})
	if node.Tainted {
		g.shut[node.Name] = true
		g.whileShut(node.Name, Step{Do: UntaintNode, Name: node.Name})
	}
}

// maintain closes a node for a while.
func (g *generator) maintain(node string) {
	shut, open := CordonNode, OpenNode
	if g.one(1, 2) {
		shut, open = TaintNode, UntaintNode
	}
	g.add(Step{Do: shut, Name: node})
	g.whileShut(node, Step{Do: open, Name: node})
}

// needing makes a most important gang that cannot start without this node, which is shut: each of its members takes
// more than half of it, and it has exactly the members that fit on this node and the open ones, of its zone or all, if
// nothing else runs. It reports false if they would be too many.
func (g *generator) needing(node string) bool {
	lacks := g.made[node]
	if lacks == nil || g.gone[node] {
		return false
	}
	like := Pod{MilliCPU: lacks.CPUs * 600, MemGiB: 1, Priority: 2000}
	if g.one(2, 3) {
		like.Zone = lacks.Zone
	}
	room := 0
	for _, name := range g.nodes {
		n := g.made[name]
		if name == node || !g.shut[name] && !g.gone[name] && (like.Zone == "" || like.Zone == n.Zone) {
			room += int(n.CPUs * 1000 / like.MilliCPU)
		}
	}
	if room > mostNeeding {
		return false
	}
	gang := &Gang{Name: fmt.Sprintf("g%d", len(g.gangs)), MinMember: room}
	g.gangs, like.Gang = append(g.gangs, gang.Name), gang.Name
	g.add(Step{Do: CreateGang, Gang: gang})
	for range room {
		g.members[gang.Name] = append(g.members[gang.Name], g.another(like, g.soon()))
	}
	return true
}

// whileShut is what happens while a node is closed, until it opens.
func (g *generator) whileShut(node string, opens Step) {
	switch g.random.IntN(8) {
	case 0:
		g.add(Step{Do: Restart, Down: metav1.Duration{Duration: g.soon()}})
		g.gang()
	case 1:
		g.gang()
	case 2:
		g.burst(1 + g.random.IntN(4))
	case 3: // nothing
	default:
		if g.needing(node) {
			// The gang is looked at before the node opens, and then has time to start.
			opens.After = metav1.Duration{Duration: time.Duration(1+g.random.IntN(5)) * time.Second}
			g.add(opens)
			g.add(Step{Do: CreatePod, Pod: g.pod(), After: metav1.Duration{Duration: 31 * time.Second}})
			return
		}
	}
	g.add(opens)
}
