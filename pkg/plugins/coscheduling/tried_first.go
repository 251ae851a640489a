package coscheduling

// triedFirst says that gangs are tried for what came free before the pod is.
type triedFirst struct{}

// String does not name the gangs; there may be many.
func (t triedFirst) String() string { return t.Kind() }

// Kind says it.
func (triedFirst) Kind() string {
	return "node(s) with room that came free just now, for which gangs of higher priority are tried first"
}
