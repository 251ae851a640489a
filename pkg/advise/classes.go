package advise

import (
	"cmp"
	"context"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gangview"
)

// mostClasses is how many kinds of members of a gang are told apart: of one with more, all count as the hardest.
const mostClasses = 16

// class is a kind of pods of a unit that are placed alike, without the claims that were made for them.
type class struct {
	pod    *v1.Pod
	claims counts
	n      int

	fw    framework.Framework
	state fwk.CycleState
	left  *fwk.PreFilterResult
}

// classes are the kinds of pods of a unit, the hardest to place first; nil if the profile refuses one before it looks
// at nodes.
func (v *view) classes(s *search, u *unit) []*class {
	var classes []*class
	byKey := map[string]*class{}
	for _, member := range u.Pods {
		if len(member.Spec.SchedulingGates) > 0 {
			continue
		}
		pod, claims := v.devices.withoutClaims(alone(u, member))
		key := gangview.Member(pod, gangview.Membership{}, nil, true).Class + claims.String()
		if byKey[key] == nil {
			byKey[key] = &class{pod: pod, claims: claims}
			classes = append(classes, byKey[key])
		}
		byKey[key].n++
	}
	slices.SortStableFunc(classes, func(a, b *class) int {
		return cmp.Or(cmp.Compare(b.devices(), a.devices()), byHardness(&s.keys, b.pod, a.pod))
	})
	if len(classes) > mostClasses {
		for _, c := range classes[1:] {
			classes[0].n += c.n
		}
		classes = classes[:1]
	}
	for _, c := range classes {
		var status *fwk.Status
		c.fw, c.state = v.world.profiles[c.pod.Spec.SchedulerName], framework.NewCycleState()
		if c.left, status, _ = c.fw.RunPreFilterPlugins(context.Background(), c.state, c.pod); !status.IsSuccess() {
			return nil
		}
	}
	return classes
}

func (c *class) devices() (n int) {
	for _, of := range c.claims {
		n += of
	}
	return n
}

func (c *class) mayBeOn(node string) bool { return c.left.AllNodes() || c.left.NodeNames.Has(node) }

// domains are the nodes that share the value of each level, or all nodes if there is no level.
func (v *view) domains(levels []string) [][]fwk.NodeInfo {
	if len(levels) == 0 {
		return [][]fwk.NodeInfo{v.infos}
	}
	var domains [][]fwk.NodeInfo
	at := map[string]int{}
	for _, info := range v.infos {
		values := make([]string, len(levels))
		for i, level := range levels {
			values[i] = info.Node().Labels[level]
		}
		if slices.Contains(values, "") {
			continue
		}
		name := strings.Join(values, "/")
		i, known := at[name]
		if !known {
			i = len(domains)
			at[name] = i
			domains = append(domains, nil)
		}
		domains[i] = append(domains[i], info)
	}
	return domains
}

// short puts the members of a unit on the nodes as they are, class after class, and returns the first class that does
// not fit, for how many pods of it room is needed, and the nodes as the classes before it leave them. The members of
// easier classes that do not fit either count as pods of that class: room for these does for them.
func (v *view) short(classes []*class, nodes []fwk.NodeInfo, u *unit) (*class, int, []fwk.NodeInfo) {
	if len(classes) == 1 {
		return classes[0], u.Needs, nodes
	}
	var first *class
	before, now, needs, total := nodes, nodes, 0, 0
	for _, c := range classes {
		missing, after := v.place(c, now, nil)
		total += c.n
		switch {
		case first != nil:
			needs += missing
		case missing > 0:
			first, before, needs = c, now, c.n
		}
		now = after
	}
	if first == nil { // what keeps the unit from starting is not that a member does not fit
		return classes[0], u.Needs, nodes
	}
	return first, max(1, needs-(total-u.Needs)), before
}

// missing is how many members of a unit fit on no node when the units of the rooms are gone, beyond those that need not
// start.
func (v *view) missing(classes []*class, nodes []fwk.NodeInfo, u *unit, rooms []room) int {
	gone := map[string][]*unit{}
	for _, r := range rooms {
		gone[r.node] = r.units
	}
	without, total := 0, 0
	for _, c := range classes {
		missing, after := v.place(c, nodes, gone)
		nodes = after
		without, total = without+missing, total+c.n
	}
	return without - (total - u.Needs)
}

// place puts the pods of a class on the nodes in turn, without the units that are gone. It returns how many fit
// nowhere, and the nodes with the others.
func (v *view) place(c *class, nodes []fwk.NodeInfo, gone map[string][]*unit) (missing int, after []fwk.NodeInfo) {
	missing, after = c.n, slices.Clone(nodes)
	for i, info := range nodes {
		name := info.Node().Name
		if missing == 0 {
			break
		}
		if !c.mayBeOn(name) {
			continue
		}
		if t := c.newTrial(context.Background(), v.devices, info); t != nil {
			if gone[name] != nil {
				t = t.without(gone[name])
			}
			n, filled := t.fill(missing)
			after[i] = filled
			missing -= n
		}
	}
	return missing, after
}
