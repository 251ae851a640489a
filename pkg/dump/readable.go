package dump

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/wellknown"
)

// Learn takes note of what of the objects has to stay readable for pods to be scheduled as they were. It comes before
// Hash, for all objects of a dump.
func (h *NameHasher) Learn(obj runtime.Object) {
	switch obj := obj.(type) {
	case *v1.Node:
		read, _ := h.keys.ReadGPUNode(obj)
		for _, pool := range read.Pools() {
			h.models[strings.ToLower(pool.Model())] = true
		}
	case *v1.Pod:
		h.learnTerms(obj.Spec.Affinity)
	case *v1.PersistentVolume:
		if obj.Spec.NodeAffinity != nil {
			h.learnSelector(obj.Spec.NodeAffinity.Required)
		}
	}
}

func (h *NameHasher) learnTerms(affinity *v1.Affinity) {
	if affinity == nil || affinity.NodeAffinity == nil {
		return
	}
	h.learnSelector(affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	for _, term := range affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		h.learnSelector(&v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term.Preference}})
	}
}

func (h *NameHasher) learnSelector(s *v1.NodeSelector) {
	if s == nil {
		return
	}
	for _, term := range s.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Operator == v1.NodeSelectorOpGt || e.Operator == v1.NodeSelectorOpLt {
				h.compared[e.Key] = true
			}
		}
	}
}

// Readable names the labels and annotations whose values were left as they were, sorted.
func (h *NameHasher) Readable() []string { return slices.Sorted(maps.Keys(h.readable)) }

// mapped are annotations whose names are hashed one by one.
var mapped = []string{
	wellknown.GPUAssignedKey, wellknown.NearKey, wellknown.LicensesKey, wellknown.DatasetsKey,
	wellknown.MinMembersByRoleKey, wellknown.GroupsKey, wellknown.GroupKey, wellknown.GrowByKey,
}

// structured reports whether values of the annotation are lists of devices, keys of labels or names of the
// configuration: only UUIDs in them are hashed.
func structured(key string) bool {
	return !strings.HasPrefix(key, "berth.dev/") || slices.Contains(gpuview.AgentKeys, key) || slices.Contains([]string{
		wellknown.TopologyRequiredKey, wellknown.TopologyPreferredKey, wellknown.SegmentTopologyKey, wellknown.RoleLabelKey,
		wellknown.SLAClassKey,
	}, key)
}

var (
	// plainWord is one of the words that annotations of Berth's own have, plainAmount a number, an amount or a time.
	plainWord = regexp.MustCompile(
		`^(true|false|allow|avoid|tolerate|require|required|preferred|exclusive|shared)$`)
	plainAmount = regexp.MustCompile(`^[-+]?[0-9][-+0-9.:TZeE]*([kMGTP]i?)?$`)
)

// plain reports whether the value of an annotation of Berth's own says what scheduling needs in words that every
// cluster uses. A number is one only where numbers are read: elsewhere it may be that of an account.
func plain(key, value string) bool {
	return plainWord.MatchString(value) || plainAmount.MatchString(value) && slices.Contains([]string{
		wellknown.DeadlineKey, wellknown.GPUMemoryMinKey, wellknown.PricePerHourKey, wellknown.SLOLatencyKey,
		wellknown.SLOThroughputKey,
		wellknown.StandInKey, wellknown.IPAddressKey, wellknown.SegmentSizeKey,
	}, key)
}

// modelList hashes what no GPU of the cluster is called.
func (h *NameHasher) modelList(list string) string {
	models := strings.Split(list, "|")
	for i, model := range models {
		model = strings.TrimSpace(model)
		if h.models[strings.ToLower(gpuview.CanonicalModel(model))] {
			h.readable["GPU model "+model] = true
		} else if model != "" {
			models[i] = h.name(model)
		}
	}
	return strings.Join(models, "|")
}
