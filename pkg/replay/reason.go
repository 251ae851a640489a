package replay

import (
	"regexp"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// notDecided is the reason of a pod on which the scheduler has not said anything.
const notDecided = "not tried: held back before the queue, or waiting in it"

var (
	nodesAvailable = regexp.MustCompile(`^0/\d+ nodes are available:? ?`)
	gangName       = regexp.MustCompile(`^gang \S+ `)
	countedReason  = regexp.MustCompile(`^(\d+) (.+)$`)
)

// mainReason is what keeps a pending pod from the most nodes: of the scheduler's message "0/40 nodes are available: 30
// Insufficient cpu, 10 node(s) had untolerated taints. preemption: …" it is "Insufficient cpu".
func mainReason(pod *v1.Pod) string {
	message := ""
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			message = c.Message
		}
	}
	if message == "" {
		return notDecided
	}
	message, _, _ = strings.Cut(message, " preemption: ")
	rest := nodesAvailable.ReplaceAllString(message, "")
	if rest == message {
		// Without its name the sentence on a gang is the same for gangs that lack the same.
		return gangName.ReplaceAllString(message, "gang ")
	}
	best, bestCount := strings.TrimSuffix(rest, "."), -1
	for _, clause := range strings.Split(rest, ", ") {
		m := countedReason.FindStringSubmatch(strings.TrimSuffix(clause, "."))
		if m == nil {
			continue
		}
		if n, err := strconv.Atoi(m[1]); err == nil && n > bestCount {
			best, bestCount = m[2], n
		}
	}
	return best
}
