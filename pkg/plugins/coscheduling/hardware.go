package coscheduling

import (
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/status"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
)

// hardware knows the nodes on which hardware fails. They count as cordoned for members of gangs: if one member
// stops, its gang stops as a whole.
type hardware struct {
	mu sync.RWMutex
	// failing says why, by node.
	failing map[string]string
}

// see takes what is said of a node now, nothing if its hardware works, and reports whether that is a new fault.
func (h *hardware) see(node, why string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.failing[node]
	if why == "" {
		delete(h.failing, node)
		return false
	}
	if h.failing == nil {
		h.failing = map[string]string{}
	}
	h.failing[node] = why
	return why != before
}

// any reports whether hardware fails anywhere.
func (h *hardware) any() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.failing) > 0
}

// on reports whether hardware of the node fails.
func (h *hardware) on(node string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.failing[node] != ""
}

// failingHardware is what Filter says of such nodes.
const failingHardware = "node(s) had failing hardware"

// NodeRule keeps members of gangs off nodes with failing hardware.
func (p *Plugin) NodeRule(pod *v1.Pod) process.NodeRule {
	if p.shared.members.Has(pod) {
		return workingHardware{}
	}
	return nil
}

type workingHardware struct{}

// Key is the same for all members.
func (workingHardware) Key() string { return "hardware" }

// Against is what Filter says against the node.
func (workingHardware) Against(node *v1.Node) string {
	if podview.FailingHardware(node) != "" {
		return failingHardware
	}
	return ""
}

// seeHardware notes whether hardware of the node fails, and tells the gangs that have started and run there when it
// begins to.
func (f *feed) seeHardware(node *v1.Node) {
	why := podview.FailingHardware(node)
	if !f.c.hardware.see(node.Name, why) || !f.c.told.election.Leads() {
		return
	}
	members := map[gang.ID][]*v1.Pod{}
	for _, m := range f.c.headroom.Cluster.MembersOn(node.Name) {
		members[m.Of] = append(members[m.Of], m.Object)
	}
	for id, pods := range members {
		if v, known := f.c.ledger.View(id); !known || !v.Started {
			continue
		}
		var about runtime.Object = pods[0]
		if pg := f.c.members.Group(id); pg != nil {
			about = status.ReferenceTo(pg)
		}
		f.c.told.recorder.Eventf(about, nil, v1.EventTypeWarning, "FailingHardware", "Scheduling", "%s",
			fmt.Sprintf("node %s, on which %s of the gang %s, %s; the scheduler places no member there", node.Name,
				plural.Of(len(pods), "member"), plural.Choose(len(pods), "runs", "run"), why))
	}
}
