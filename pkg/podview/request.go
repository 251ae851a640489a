package podview

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// DescribeRequest returns the requests of a pod as text: its extended resources or, without any, all others.
func DescribeRequest(pod *v1.Pod) string {
	requests := Requests(pod)
	var extended, basic []string
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		q := requests[name]
		text := q.String() + " " + string(name)
		if strings.Contains(string(name), "/") {
			extended = append(extended, text)
		} else {
			basic = append(basic, text)
		}
	}
	switch {
	case len(extended) > 0:
		return strings.Join(extended, " + ")
	case len(basic) > 0:
		return strings.Join(basic, " + ")
	default:
		return "pod"
	}
}

// HasHostPorts reports whether the pod asks for ports of its node.
func HasHostPorts(pod *v1.Pod) bool {
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if p.HostPort != 0 {
				return true
			}
		}
	}
	return false
}
