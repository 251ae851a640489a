package kubeview

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
)

// GangTopology says within which levels the members of a gang have to, and should, stay together: keys of node labels.
type GangTopology struct {
	// Required is empty if the members may lie anywhere.
	Required string
	// Preferred is empty if nothing narrower than Required is better.
	Preferred string
}

// TopologyOf reads the levels of a gang from its PodGroup, which may be nil, and where that says nothing from a member.
func TopologyOf(pg *schedulingv1alpha1.PodGroup, pod *v1.Pod) (GangTopology, error) {
	var t GangTopology
	for key, level := range map[string]*string{TopologyRequiredKey: &t.Required, TopologyPreferredKey: &t.Preferred} {
		object, value, found := "pod", "", false
		if pg != nil {
			if value, found = pg.Annotations[key]; found {
				object = "PodGroup " + pg.Name
			}
		}
		if !found {
			if value, found = pod.Annotations[key]; !found {
				continue
			}
		}
		if len(validation.IsQualifiedName(value)) > 0 {
			return GangTopology{}, &BadValue{Object: object, Kind: "annotation", Key: key, Value: value,
				Allowed: "the key of a node label, such as topology.kubernetes.io/rack"}
		}
		*level = value
	}
	if t.Preferred == t.Required {
		t.Preferred = ""
	}
	return t, nil
}

// Levels returns the label keys that count, the widest first.
func (t GangTopology) Levels() []string {
	var out []string
	for _, key := range []string{t.Required, t.Preferred} {
		if key != "" {
			out = append(out, key)
		}
	}
	return out
}

// MayBackfill reports whether the pod may run in room that is kept for a gang: by its own word or by that of its
// PodGroup, which may be nil.
func MayBackfill(pg *schedulingv1alpha1.PodGroup, pod *v1.Pod) bool {
	return pod.Annotations[BackfillKey] == "allow" || (pg != nil && pg.Annotations[BackfillKey] == "allow")
}
