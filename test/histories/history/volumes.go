package history

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/storage/volume"
)

// LocalClass is the class of volumes that are on nodes, and are bound when a pod is.
const LocalClass = "local"

// LateKey is the annotation that says how many seconds longer than its grace period a pod takes to end.
const LateKey = "histories/late"

var (
	volumeModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	volumeSize  = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
)

// volumeWhere is a volume that can be reached where a label of the node has the value.
func volumeWhere(name, label, value string) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PersistentVolumeSpec{
			Capacity: volumeSize, AccessModes: volumeModes,
			PersistentVolumeSource: v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/data"}},
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: label, Operator: v1.NodeSelectorOpIn,
					Values: []string{value}}},
			}}}},
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable},
	}
}

// volumes are those that the node has.
func (n *Node) volumes() []runtime.Object {
	var objects []runtime.Object
	for i := range n.Volumes {
		pv := volumeWhere(fmt.Sprintf("%s-%d", n.Name, i), v1.LabelHostname, n.Name)
		pv.Spec.StorageClassName = LocalClass
		objects = append(objects, pv)
	}
	return objects
}

// volume is a claim to a volume of whichever node the pod gets, or a volume that is in a zone and the claim that is
// bound to it.
func (p *Pod) volume() []runtime.Object {
	class := ""
	if p.LocalVolume {
		class = LocalClass
	}
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: Namespace},
		Spec: v1.PersistentVolumeClaimSpec{AccessModes: volumeModes, StorageClassName: &class,
			Resources: v1.VolumeResourceRequirements{Requests: volumeSize}},
		Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending},
	}
	if p.LocalVolume {
		return []runtime.Object{claim}
	}
	pv := volumeWhere(p.Name, v1.LabelTopologyZone, p.VolumeZone)
	pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: Namespace, Name: p.Name}
	pv.Status.Phase = v1.VolumeBound
	claim.Annotations = map[string]string{volume.AnnBindCompleted: "yes"}
	claim.Spec.VolumeName = p.Name
	claim.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound, AccessModes: volumeModes, Capacity: volumeSize}
	return []runtime.Object{pv, claim}
}

// HasLocalVolumes reports whether nodes have volumes, at the beginning or later.
func (h *History) HasLocalVolumes() bool {
	return slices.ContainsFunc(h.Nodes, func(n Node) bool { return n.Volumes > 0 }) ||
		slices.ContainsFunc(h.Steps, func(s Step) bool { return s.Node != nil && s.Node.Volumes > 0 })
}
