package read

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// maxTopologyLevels is how many levels a gang may name, required and preferred ones together.
const maxTopologyLevels = 8

// Topology has the levels within which the members of a gang must or should stay together: keys of node labels, the
// widest level first.
type Topology struct {
	// Required is empty if the members may lie anywhere.
	Required []string
	// Preferred levels lie within the required ones. Empty if nothing narrower than Required is better.
	Preferred []string
	// Segment is zero if runs of consecutive ranks need not share a domain.
	Segment Segment
}

// TopologyOf reads the levels of a gang from its PodGroup, which may be nil, and annotations that it lacks from a
// member. An error is a BadValue.
func TopologyOf(pg *schedulingv1alpha1.PodGroup, pod *v1.Pod) (Topology, error) {
	var t Topology
	for _, at := range []struct {
		key    string
		levels *[]string
	}{{wellknown.TopologyRequiredKey, &t.Required}, {wellknown.TopologyPreferredKey, &t.Preferred}} {
		of := annotatedObject(pg, pod, at.key)
		value, found := of.GetAnnotations()[at.key]
		if !found {
			continue
		}
		levels, allowed := topologyLevels(value)
		// To prefer what is required adds nothing.
		levels = slices.DeleteFunc(levels, func(key string) bool { return slices.Contains(t.Required, key) })
		if allowed == "" && len(t.Required)+len(levels) > maxTopologyLevels {
			allowed = fmt.Sprintf("allowed together with the %d levels of %s: a gang has at most %d levels", len(t.Required),
				wellknown.TopologyRequiredKey, maxTopologyLevels)
		}
		if allowed != "" {
			return Topology{}, podview.BadAnnotation(of, at.key, allowed)
		}
		*at.levels = levels
	}
	var bad *wellknown.BadValue
	if t.Segment, bad = segmentOf(pg, pod); bad != nil {
		return Topology{}, bad
	}
	return t, nil
}

// annotatedObject returns the PodGroup, which may be nil, if it has one of the annotations, else the pod.
func annotatedObject(pg *schedulingv1alpha1.PodGroup, pod *v1.Pod, keys ...string) metav1.Object {
	for _, key := range keys {
		if pg != nil && metav1.HasAnnotation(pg.ObjectMeta, key) {
			return pg
		}
	}
	return pod
}

// topologyLevels reads a comma-separated list of label keys. For a bad value it returns what is allowed.
func topologyLevels(value string) (levels []string, allowed string) {
	for i, key := range strings.Split(value, ",") {
		key = strings.TrimSpace(key)
		switch first := slices.Index(levels, key); {
		case i == maxTopologyLevels:
			return nil, fmt.Sprintf("a list of at most %d node label keys", maxTopologyLevels)
		case len(validation.IsQualifiedName(key)) > 0 && key == value:
			return nil, "the key of a node label, such as topology.kubernetes.io/rack"
		case len(validation.IsQualifiedName(key)) > 0:
			return nil, fmt.Sprintf(
				"a comma-separated list of node label keys, widest level first: item %d is not the key of a label", i+1)
		case first >= 0:
			return nil, fmt.Sprintf("a list of different node label keys: item %d repeats item %d", i+1, first+1)
		}
		levels = append(levels, key)
	}
	return levels, ""
}

// Levels returns the label keys of all levels, the widest first: Required, then Preferred.
func (t Topology) Levels() []string { return slices.Concat(t.Required, t.Preferred) }

// Segment requires that each run of Size consecutive ranks shares a value of the node label Level.
type Segment struct {
	Size  int
	Level string
}

var allowedSize = fmt.Sprintf("a whole number from 2 to %d", maxMinMember)

// segmentOf reads the segments of a gang from its PodGroup, which may be nil, or from a member if the PodGroup has
// neither annotation.
func segmentOf(pg *schedulingv1alpha1.PodGroup, pod *v1.Pod) (Segment, *wellknown.BadValue) {
	of := annotatedObject(pg, pod, wellknown.SegmentSizeKey, wellknown.SegmentTopologyKey)
	annotations := of.GetAnnotations()
	size, sized := annotations[wellknown.SegmentSizeKey]
	level, levelled := annotations[wellknown.SegmentTopologyKey]
	if !sized && !levelled {
		return Segment{}, nil
	}
	n, err := strconv.ParseInt(size, 10, 32)
	if err != nil || n < 2 || n > maxMinMember {
		return Segment{}, podview.BadAnnotation(of, wellknown.SegmentSizeKey, allowedSize)
	}
	if len(validation.IsQualifiedName(level)) > 0 {
		return Segment{}, podview.BadAnnotation(of, wellknown.SegmentTopologyKey,
			"the key of a node label, such as topology.kubernetes.io/rack")
	}
	return Segment{Size: int(n), Level: level}, nil
}

// Unranked is the error of a pod without a rank in a gang with segments.
func (s Segment) Unranked(pod *v1.Pod) *wellknown.BadValue {
	return &wellknown.BadValue{Object: "pod", Kind: "annotation", Key: wellknown.SegmentSizeKey,
		Value: strconv.Itoa(s.Size), Allowed: "allowed for a gang with pods that no controller numbers, such as " + pod.Name +
			": use an indexed Job, a JobSet, a StatefulSet or another controller that writes an index into its pods"}
}
