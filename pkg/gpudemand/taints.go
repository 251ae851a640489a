package gpudemand

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/podview"
)

// taintSets are the taints that keep pods off nodes with GPUs, each set of them once with how many nodes have it.
type taintSets struct {
	byNode map[string]string
	sets   map[string]taintSet
}

type taintSet struct {
	taints []v1.Taint
	nodes  int
}

func newTaintSets() taintSets {
	return taintSets{byNode: map[string]string{}, sets: map[string]taintSet{}}
}

// set counts the node with the taints that it has now.
func (s taintSets) set(node string, all []v1.Taint) {
	var taints []v1.Taint
	key := ""
	for i := range all {
		if podview.KeepsOff(&all[i]) {
			taints = append(taints, all[i])
			key += all[i].ToString() + " "
		}
	}
	if before, known := s.byNode[node]; known && before == key {
		return
	}
	s.remove(node)
	s.byNode[node] = key
	s.sets[key] = taintSet{taints, s.sets[key].nodes + 1}
}

// remove takes the node out. It is idempotent.
func (s taintSets) remove(node string) {
	key, known := s.byNode[node]
	if !known {
		return
	}
	delete(s.byNode, node)
	if set := s.sets[key]; set.nodes > 1 {
		s.sets[key] = taintSet{set.taints, set.nodes - 1}
	} else {
		delete(s.sets, key)
	}
}

// admit reports whether any of the nodes lets the pod in. With no node known yet all pods count.
func (s taintSets) admit(pod *v1.Pod) bool {
	for _, set := range s.sets {
		if podview.Tolerates(pod, set.taints) {
			return true
		}
	}
	return len(s.sets) == 0
}
