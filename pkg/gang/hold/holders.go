package hold

import (
	"math"

	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/apis/config"
)

// Holders says for whose gangs capacity may be reserved, and on how large a part of the nodes.
type Holders struct {
	// inTurn and byTime are for namespaces without a limit of their own, where no start is known and where one is; with 0
	// nothing is reserved for any gang.
	inTurn, byTime int
	minPriority    int32
	// namespaces holds the limits by name, that of config.AnyNamespace for all others, nil where the reservation's count;
	// nil if every namespace may have all.
	namespaces map[string]*int32
}

// HoldersFrom reads validated arguments.
func HoldersFrom(r *config.GangReservation) Holders {
	h := Holders{inTurn: 50, byTime: 100, minPriority: ptr.Deref(r.MinPriority, math.MinInt32)}
	if r.MaxNodesPercent != nil {
		h.inTurn, h.byTime = int(*r.MaxNodesPercent), int(*r.MaxNodesPercent)
	}
	for _, n := range r.Namespaces {
		if h.namespaces == nil {
			h.namespaces = map[string]*int32{}
		}
		h.namespaces[n.Name] = n.MaxNodesPercent
	}
	return h
}

// percent is the largest part of all nodes that may be kept for a gang of the namespace and the priority; 0 if nothing
// may.
func (h *Holders) percent(namespace string, priority int32, byTime bool) int {
	if priority < h.minPriority {
		return 0
	}
	most := h.inTurn
	if byTime {
		most = h.byTime
	}
	if h.namespaces == nil {
		return most
	}
	limit, named := h.namespaces[namespace]
	if !named {
		if limit, named = h.namespaces[config.AnyNamespace]; !named {
			return 0
		}
	}
	return int(ptr.Deref(limit, int32(most)))
}
