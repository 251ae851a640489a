package gang

// Where returns the node of each member that is bound or holds an assignment.
func (l *Ledger) Where(id ID) map[Ref]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.groups[id]
	if g == nil {
		return nil
	}
	nodes := map[Ref]string{}
	for _, m := range g.members {
		switch {
		case m.State == Bound:
			nodes[m.Ref()] = m.Node
		case m.stage.holds():
			nodes[m.Ref()] = m.node
		}
	}
	return nodes
}
