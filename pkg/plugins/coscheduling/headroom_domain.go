package coscheduling

import (
	"slices"
	"strings"
)

// domain returns the values of labels of the nodes that hold most pods, by the number of pods on each node. It is empty if none is
// known, or if two domains hold as many.
func (h *headroom) domain(held map[string]int, labels []string) []string {
	if len(labels) == 0 {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	pods := map[string]int{}
	var most []string
	largest, tie := 0, false
	for name, n := range held {
		node := h.byName[name]
		if node == nil || node.node == nil {
			continue
		}
		values := make([]string, len(labels))
		for i, label := range labels {
			values[i] = node.node.Labels[label]
		}
		path := strings.Join(values, "\x00")
		pods[path] += n
		switch {
		case slices.Equal(values, most):
			largest, tie = pods[path], tie && pods[path] == largest
		case pods[path] > largest:
			most, largest, tie = values, pods[path], false
		case pods[path] == largest:
			tie = true
		}
	}
	if tie {
		return nil
	}
	return most
}
