package main

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What happens to gangs and nodes in several steps that belong together. Single steps would seldom meet so.

// another makes a pod like p, and says its name.
func (g *generator) another(p Pod, after time.Duration) Pod {
	p.Name = fmt.Sprintf("p%d", len(g.pods))
	g.keep(&p)
	g.add(Step{Do: createPod, Pod: &p, After: metav1.Duration{Duration: after}})
	return p
}

// soon is the time between steps that one controller takes in a row.
func (g *generator) soon() time.Duration {
	return time.Duration(1+g.random.IntN(20)) * time.Millisecond
}

// rerun takes all members of a gang away and makes others, as a Job does that runs again under its name. Others may be faster.
func (g *generator) rerun(gang string) {
	members := g.members[gang]
	for i := range members {
		g.add(Step{Do: deletePod, Name: members[i].Name, After: metav1.Duration{Duration: time.Millisecond}})
	}
	if len(members) > 0 && g.one(1, 2) {
		g.burst(1 + g.random.IntN(4))
	}
	for i := range members {
		after := g.soon()
		if i == 0 {
			after = g.after()
		}
		members[i] = g.another(members[i], after)
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
		g.add(Step{Do: deletePod, Name: members[i].Name, After: metav1.Duration{Duration: g.soon()}})
	}
	if g.one(2, 3) {
		g.add(Step{Do: restart, Down: metav1.Duration{Duration: g.soon()}})
	}
	for i := range g.random.IntN(gone + 1) {
		members[i] = g.another(members[i], g.soon())
	}
}

// arrive adds a node, often one that takes no pods before it is ready.
func (g *generator) arrive() {
	node := g.node()
	node.Tainted = g.one(1, 2)
	g.add(Step{Do: addNode, Node: node})
	if node.Tainted {
		g.meanwhile()
		g.add(Step{Do: untaintNode, Name: node.Name})
	}
}

// maintain closes a node for a while.
func (g *generator) maintain(node string) {
	shut, open := cordonNode, openNode
	if g.one(1, 2) {
		shut, open = taintNode, untaintNode
	}
	g.add(Step{Do: shut, Name: node})
	g.meanwhile()
	g.add(Step{Do: open, Name: node})
}

// meanwhile is what happens while a node is closed.
func (g *generator) meanwhile() {
	switch g.random.IntN(4) {
	case 0:
		g.add(Step{Do: restart, Down: metav1.Duration{Duration: g.soon()}})
		g.gang()
	case 1:
		g.gang()
	case 2:
		g.burst(1 + g.random.IntN(4))
	}
}
