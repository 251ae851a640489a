package main

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
)

// volumesAfter is how long the controller of volumes takes.
const volumesAfter = 100 * time.Millisecond

// localClass is the class of volumes that are on nodes, and are bound when a pod is.
const localClass = "local"

var (
	volumes      = v1.SchemeGroupVersion.WithResource("persistentvolumes")
	volumeClaims = v1.SchemeGroupVersion.WithResource("persistentvolumeclaims")

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
		pv.Spec.StorageClassName = localClass
		objects = append(objects, pv)
	}
	return objects
}

// volume is a claim to a volume of whichever node the pod gets, or a volume that is in a zone and the claim that is
// bound to it.
func (p *Pod) volume() []runtime.Object {
	class := ""
	if p.LocalVolume {
		class = localClass
	}
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: namespace},
		Spec: v1.PersistentVolumeClaimSpec{AccessModes: volumeModes, StorageClassName: &class,
			Resources: v1.VolumeResourceRequirements{Requests: volumeSize}},
		Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending},
	}
	if p.LocalVolume {
		return []runtime.Object{claim}
	}
	pv := volumeWhere(p.Name, v1.LabelTopologyZone, p.VolumeZone)
	pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: namespace, Name: p.Name}
	pv.Status.Phase = v1.VolumeBound
	claim.Annotations = map[string]string{volume.AnnBindCompleted: "yes"}
	claim.Spec.VolumeName = p.Name
	claim.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound, AccessModes: volumeModes, Capacity: volumeSize}
	return []runtime.Object{pv, claim}
}

// hasLocalVolumes reports whether nodes have volumes, at the beginning or later.
func (h *History) hasLocalVolumes() bool {
	return slices.ContainsFunc(h.Nodes, func(n Node) bool { return n.Volumes > 0 }) ||
		slices.ContainsFunc(h.Steps, func(s Step) bool { return s.Node != nil && s.Node.Volumes > 0 })
}

// bindVolumes does what the controller of volumes does: it binds the claims for which the scheduler has chosen a
// volume, and frees volumes whose claim is gone.
func (w *world) bindVolumes() error {
	for _, obj := range w.api.List(volumes) {
		pv := obj.(*v1.PersistentVolume)
		if pv.Spec.StorageClassName != localClass || pv.Spec.ClaimRef == nil {
			continue
		}
		claim, ok := w.api.Get(volumeClaims,
			types.NamespacedName{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name}).(*v1.PersistentVolumeClaim)
		var err error
		switch {
		case !ok || claim.UID != pv.Spec.ClaimRef.UID || claim.Spec.VolumeName != "" && claim.Spec.VolumeName != pv.Name:
			err = w.merge(volumes, pv.Name, object("spec", object("claimRef", nil)))
		case claim.Spec.VolumeName == "":
			err = w.merge(volumeClaims, claim.Name, map[string]any{
				"metadata": object("annotations", object(volume.AnnBindCompleted, "yes")),
				"spec":     object("volumeName", pv.Name), "status": object("phase", v1.ClaimBound),
			})
		}
		if err != nil {
			return fmt.Errorf("binding volume %s: %w", pv.Name, err)
		}
	}
	return nil
}

// giveBackVolume deletes the claim of a pod that has gone, to a volume of its node. One that comes again under its name
// keeps it, as those of StatefulSets do.
func (w *world) giveBackVolume(pod *v1.Pod) {
	if p := w.made[pod.Name]; p != nil && (!p.LocalVolume || p.Returns && p.KeepsName) {
		return
	}
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	if claim, ok := w.api.Get(volumeClaims, name).(*v1.PersistentVolumeClaim); ok &&
		*claim.Spec.StorageClassName == localClass {
		w.api.Delete(volumeClaims, name)
	}
}
