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
	// gangFits is what precedes the clauses of the sentence on a gang.
	gangFits      = regexp.MustCompile(`^gang \S+ needs .*, fits \d+(?:: |$)`)
	countedReason = regexp.MustCompile(`^(\d+) (.+)$`)
	// amounts differ from pod to pod and node to node where the reason is the same.
	amounts = regexp.MustCompile(` \([^()]*\bneed [^()]*\)`)
	clause  = regexp.MustCompile(`(?:[^,(]|\([^)]*\))+`)
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
	switch {
	case gangFits.MatchString(rest):
		return strings.TrimSuffix("gang does not fit: "+mostNodes(gangFits.ReplaceAllString(rest, "")), ": ")
	case gangName.MatchString(rest):
		return gangName.ReplaceAllString(rest, "gang ")
	case nodesAvailable.MatchString(message):
		return mostNodes(rest)
	default:
		return rest
	}
}

// mostNodes is the clause of those that are counted that counts the most nodes, without its numbers.
func mostNodes(clauses string) string {
	best, bestCount := clauses, -1
	for _, c := range clause.FindAllString(clauses, -1) {
		m := countedReason.FindStringSubmatch(strings.TrimSpace(c))
		if m == nil {
			continue
		}
		if n, err := strconv.Atoi(m[1]); err == nil && n > bestCount {
			best, bestCount = m[2], n
		}
	}
	return amounts.ReplaceAllString(best, "")
}
