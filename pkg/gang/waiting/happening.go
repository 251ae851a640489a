package waiting

import "berth.dev/berth/pkg/gang"

// Needs are what members may need besides capacity of a node, as a set.
type Needs uint8

// What members may need.
const (
	NeedsVolumes Needs = 1 << iota
	NeedsDevices
	// NeedsPods is set if where a member may go depends on which pods are where.
	NeedsPods
	// NeedsAnything concerns every gang.
	NeedsAnything
	// NeedsEvictions is set if pods of lower priority are in the way.
	NeedsEvictions
)

// Happening is something that may help some gangs: those that need the kind, of one namespace unless that is empty, or
// a single one.
type Happening struct {
	Kind      Needs
	Namespace string
	Only      gang.ID
}

// Concerns reports whether it may help the gang.
func (h Happening) Concerns(g *Gang) bool {
	return h.Only == g.ID || (g.Needs&h.Kind != 0 && (h.Namespace == "" || h.Namespace == g.ID.Namespace))
}
