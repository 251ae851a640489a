package reservation

import (
	"math"

	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/starttime"
)

// Holders says for whose gangs capacity may be reserved, and on how large a part of the nodes.
type Holders struct {
	// maxPercent is for namespaces without a limit of their own; with 0 nothing is reserved for anybody.
	maxPercent  int
	minPriority int32
	// byTime is for reservations by time, of namespaces without a limit of their own.
	byTime int
	// namespaces holds the limits by name, that of config.AnyNamespace for all others; nil if every namespace may have
	// all.
	namespaces map[string]int
}

// HoldersFrom reads defaulted and validated arguments.
func HoldersFrom(r *config.GangReservation) Holders {
	h := Holders{maxPercent: int(*r.MaxNodesPercent), byTime: int(*r.ByTime.MaxNodesPercent),
		minPriority: ptr.Deref(r.MinPriority, math.MinInt32)}
	for _, n := range r.Namespaces {
		if h.namespaces == nil {
			h.namespaces = map[string]int{}
		}
		h.namespaces[n.Name] = int(ptr.Deref(n.MaxNodesPercent, *r.MaxNodesPercent))
	}
	return h
}

// percent is the largest part of all nodes that may be kept for a gang of the namespace and the priority; 0 if nothing
// may.
func (h *Holders) percent(namespace string, priority int32) int {
	if priority < h.minPriority {
		return 0
	}
	if h.namespaces == nil {
		return h.maxPercent
	}
	if limit, named := h.namespaces[namespace]; named {
		return limit
	}
	return h.namespaces[config.AnyNamespace]
}

// percentByTime is percent for reservations by time.
func (h *Holders) percentByTime(namespace string, priority int32) int {
	if h.namespaces == nil && h.percent(namespace, priority) > 0 {
		return h.byTime
	}
	return h.percent(namespace, priority)
}

// EntryFrom returns the settings of reservations by time.
func EntryFrom(r *config.GangReservation) starttime.Settings {
	s := starttime.Defaults()
	s.Held, s.Enter = int(*r.ByTime.MostGangs), float64(*r.ByTime.EnterPercent)/100
	return s
}
