package capacity

import (
	"slices"
	"strings"
)

// Domain returns the values of labels of the nodes that hold most pods, by the number of pods on each node. It is empty
// if none is known, or if two domains hold as many.
func (x *Index) Domain(held map[string]int, labels []string) []string {
	if len(labels) == 0 {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	pods := map[string]int{}
	var most []string
	largest, tie := 0, false
	for name, n := range held {
		node := x.byName[name]
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
