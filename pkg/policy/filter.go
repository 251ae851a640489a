package policy

// Forbids returns why the pod may not run on the node whatever runs there; empty if it may.
func (d *Demand) Forbids(m Marks) string {
	for _, rules := range d.oneOf {
		if reason := misses(rules, m); reason != "" {
			return reason
		}
	}
	for _, r := range d.closed {
		switch {
		case !m.mayBeIn(r.nodes) || d.letIn(r, m):
		case m.unclear(r.nodes):
			return r.failed
		default:
			return r.kept
		}
	}
	for _, l := range d.licenses {
		if reason := d.set.unavailable(l.rules, m); reason != "" {
			return reason
		}
	}
	return ""
}

// misses returns why the node is in the node set of none of the rules; empty if it is.
func misses(rules []*rule, m Marks) string {
	reason := rules[0].denied
	for _, r := range rules {
		switch {
		case m.in(r.nodes):
			return ""
		case m.unclear(r.nodes):
			reason = r.failed
		}
	}
	return reason
}

// letIn reports whether another exclusive rule of the policy lets the pod onto the node.
func (d *Demand) letIn(closed *complianceRule, m Marks) bool {
	for _, r := range d.open {
		if r.policy == closed.policy && m.in(r.nodes) {
			return true
		}
	}
	return false
}

// unavailable returns why the license of the rules is not available on the node; empty if it is. Each rule that covers
// the node applies, so that all of them must be evaluated.
func (s *Set) unavailable(rules []int, m Marks) string {
	reason := s.licenses[rules[0]].denied
	for _, number := range rules {
		r := &s.licenses[number]
		switch {
		case m.in(r.nodes):
			reason = ""
		case m.unclear(r.nodes):
			return r.failed
		}
	}
	return reason
}

// Distance is how far the preferred datasets are from the node: from 0, where all are as near as possible, to 100,
// where none is there.
func (d *Demand) Distance(m Marks) int64 {
	if d.best == 0 {
		return 0
	}
	near := int64(0)
	for _, rules := range d.preferred {
		weight := int64(0)
		for _, r := range rules {
			if m.in(r.nodes) {
				weight = max(weight, r.weight)
			}
		}
		near += weight
	}
	return 100 - 100*near/d.best
}
