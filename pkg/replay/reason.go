package replay

import (
	"regexp"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// notDecided is the reason of a pod that is queued and on which the scheduler has not said anything.
const notDecided = "not tried yet: waits in the queue"

var (
	nodesAvailable = regexp.MustCompile(`^0/\d+ nodes are available:? ?`)
	gangName       = regexp.MustCompile(`^gang \S+ `)
	countedReason  = regexp.MustCompile(`^(\d+) (.+)$`)
)

// mainReason is what keeps a pending pod from the most nodes: of the scheduler's message "0/40 nodes are available: 30
// Insufficient cpu, 10 node(s) had untolerated taints. preemption: …" it is "Insufficient cpu". heldBack, if not empty, is what
// keeps it out of the queue now, which may be something else than what the last cycle said.
func mainReason(pod *v1.Pod, heldBack string) string {
	message := heldBack
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse && message == "" {
			message = c.Message
		}
	}
	if message == "" {
		return notDecided
	}
	message, _, _ = strings.Cut(message, " preemption: ")
	rest := strings.TrimSuffix(nodesAvailable.ReplaceAllString(message, ""), ".")
	if gangName.MatchString(rest) {
		// Without its name the sentence on a gang is the same for gangs that lack the same.
		return gangName.ReplaceAllString(rest, "gang ")
	}
	if !nodesAvailable.MatchString(message) {
		return rest
	}
	best, bestCount := rest, -1
	for _, clause := range strings.Split(rest, ", ") {
		m := countedReason.FindStringSubmatch(clause)
		if m == nil {
			continue
		}
		if n, err := strconv.Atoi(m[1]); err == nil && n > bestCount {
			best, bestCount = m[2], n
		}
	}
	return best
}
