package read

import (
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// Segment says that each run of Size consecutive ranks shares a value of the node label Level.
type Segment struct {
	Size  int
	Level string
}

var allowedSize = fmt.Sprintf("a whole number from 2 to %d", maxMinMember)

// segmentOf reads the segments of a gang from its PodGroup, which may be nil, or from a member if the PodGroup has
// neither annotation.
func segmentOf(pg *schedulingv1alpha1.PodGroup, pod *v1.Pod) (Segment, *wellknown.BadValue) {
	of := saying(pg, pod, wellknown.SegmentSizeKey, wellknown.SegmentTopologyKey)
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

// Unranked says that the pod has no rank, which segments need.
func (s Segment) Unranked(pod *v1.Pod) *wellknown.BadValue {
	return &wellknown.BadValue{Object: "pod", Kind: "annotation", Key: wellknown.SegmentSizeKey,
		Value: strconv.Itoa(s.Size), Allowed: "allowed for a gang with pods that no controller numbers, such as " + pod.Name +
			": use an indexed Job, a JobSet, a StatefulSet or another controller that writes an index into its pods"}
}
