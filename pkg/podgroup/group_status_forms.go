package podgroup

import schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

// reasonScheduled is the reason in conditions of groups that have started; the projects name none.
const reasonScheduled = "Scheduled"

// scheduledCondition is a condition as Kubernetes' own types have it, for a gang that has started or not.
func (p *progress) scheduledCondition(kind string) map[string]any {
	c := map[string]any{"type": kind, "status": "False", "message": p.why, "observedGeneration": p.generation}
	switch {
	case p.has() && p.step != short:
		c["status"], c["reason"] = "True", reasonScheduled
	case p.step == short:
		c["reason"] = "MembersLost"
	case p.step == unschedulable:
		c["reason"] = schedulingv1beta1.PodGroupReasonUnschedulable
	case p.step == incomplete:
		c["reason"] = "TooFewMembers"
	default:
		c["reason"] = "InProgress"
	}
	return c
}

// fillNative writes the condition of the groups of Kubernetes, which stays once it holds.
func fillNative(status map[string]any, p *progress) {
	p.fillInitially(status, schedulingv1beta1.PodGroupInitiallyScheduled)
}

// fillComposite does the same for a group of groups.
func fillComposite(status map[string]any, p *progress) {
	p.fillInitially(status, "Composite"+schedulingv1beta1.PodGroupInitiallyScheduled)
}

func (p *progress) fillInitially(status map[string]any, condition string) {
	if _, scheduled := hasCondition(status, condition); !scheduled && p.step != starting {
		setCondition(status, p.scheduledCondition(condition), p.now)
	}
}

// fillVolcano writes the phase, numbers and conditions of Volcano's PodGroups. A phase means what it means to Volcano:
// a group runs when as many members as its minimum have a node or have ended, and is completed when all of these have
// ended, well or badly.
func fillVolcano(status map[string]any, p *progress) {
	switch {
	case p.running > 0 && (p.step == short || p.step < starting):
		status["phase"] = "Unknown"
	case p.reached && p.bound:
		status["phase"] = "Running"
	case p.reached:
		status["phase"] = "Completed"
	case p.step != starting:
		// Once the pods of a group may be created, Volcano does not take that back.
		if status["phase"] != "Inqueue" {
			status["phase"] = "Pending"
		}
	default:
		status["phase"] = "Inqueue"
	}
	for key, n := range map[string]int{"running": p.running, "succeeded": p.succeeded, "failed": p.failed} {
		if n == 0 {
			// Volcano leaves zeros out. In a merge patch null takes a number away.
			if status[key] != nil {
				status[key] = nil
			}
			continue
		}
		status[key] = int64(n)
	}
	set := func(kind string, holds bool, reason string) {
		if has, _ := hasCondition(status, kind); !has && !holds {
			return
		}
		c := map[string]any{"type": kind, "status": "False"}
		if holds {
			c = map[string]any{"type": kind, "status": "True", "reason": reason, "message": p.why}
		}
		setCondition(status, c, p.now)
	}
	reason := "NotEnoughResources"
	if p.step == incomplete {
		reason = "NotEnoughTasks"
	}
	set("Unschedulable", p.step == unschedulable || p.step == incomplete, reason)
	set("Scheduled", p.has() && p.step != short, "tasks in gang are ready to be scheduled")
}
