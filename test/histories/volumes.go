package main

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"

	"berth.dev/berth/test/histories/history"
)

// volumesAfter is how long the controller of volumes takes.
const volumesAfter = 100 * time.Millisecond

var (
	volumes      = v1.SchemeGroupVersion.WithResource("persistentvolumes")
	volumeClaims = v1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
)

// bindVolumes does what the controller of volumes does: it binds the claims for which the scheduler has chosen a
// volume, and frees volumes whose claim is gone.
func (w *world) bindVolumes() error {
	for _, obj := range w.api.List(volumes) {
		pv := obj.(*v1.PersistentVolume)
		if pv.Spec.StorageClassName != history.LocalClass || pv.Spec.ClaimRef == nil {
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
		*claim.Spec.StorageClassName == history.LocalClass {
		w.api.Delete(volumeClaims, name)
	}
}
