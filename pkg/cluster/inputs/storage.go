package inputs

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func keepStorage(obj runtime.Object) (runtime.Object, error) {
	switch o := obj.(type) {
	case *v1.PersistentVolume:
		return keepVolumeObject(o), nil
	case *v1.PersistentVolumeClaim:
		return &v1.PersistentVolumeClaim{ObjectMeta: keepMeta(o.ObjectMeta), Spec: keepClaimSpec(o.Spec),
			Status: v1.PersistentVolumeClaimStatus{Phase: o.Status.Phase, AccessModes: o.Status.AccessModes,
				Capacity: o.Status.Capacity}}, nil
	case *storagev1.StorageClass:
		return &storagev1.StorageClass{ObjectMeta: keepMeta(o.ObjectMeta), Provisioner: o.Provisioner,
			ReclaimPolicy:     o.ReclaimPolicy,
			VolumeBindingMode: o.VolumeBindingMode, AllowedTopologies: o.AllowedTopologies}, nil
	case *storagev1.CSINode:
		return &storagev1.CSINode{ObjectMeta: keepMeta(o.ObjectMeta), Spec: o.Spec}, nil
	case *storagev1.CSIDriver:
		return &storagev1.CSIDriver{ObjectMeta: keepMeta(o.ObjectMeta),
			Spec: storagev1.CSIDriverSpec{StorageCapacity: o.Spec.StorageCapacity, AttachRequired: o.Spec.AttachRequired}}, nil
	case *storagev1.CSIStorageCapacity:
		return &storagev1.CSIStorageCapacity{ObjectMeta: keepMeta(o.ObjectMeta), NodeTopology: o.NodeTopology,
			StorageClassName: o.StorageClassName, Capacity: o.Capacity, MaximumVolumeSize: o.MaximumVolumeSize}, nil
	case *storagev1.VolumeAttachment:
		return &storagev1.VolumeAttachment{ObjectMeta: keepMeta(o.ObjectMeta),
			Spec: storagev1.VolumeAttachmentSpec{Attacher: o.Spec.Attacher, NodeName: o.Spec.NodeName,
				Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: o.Spec.Source.PersistentVolumeName}},
			Status: storagev1.VolumeAttachmentStatus{Attached: o.Status.Attached}}, nil
	}
	return nil, fmt.Errorf("no fields of a %T are known to be kept", obj)
}

// keepVolumeObject keeps the fields of a volume's source that limits and zones depend on.
func keepVolumeObject(p *v1.PersistentVolume) *v1.PersistentVolume {
	s := &p.Spec
	kept := &v1.PersistentVolume{
		ObjectMeta: keepMeta(p.ObjectMeta),
		Spec: v1.PersistentVolumeSpec{
			Capacity: s.Capacity, AccessModes: s.AccessModes, ClaimRef: s.ClaimRef,
			PersistentVolumeReclaimPolicy: s.PersistentVolumeReclaimPolicy,
			StorageClassName:              s.StorageClassName, VolumeMode: s.VolumeMode, NodeAffinity: s.NodeAffinity,
		},
		Status: v1.PersistentVolumeStatus{Phase: p.Status.Phase},
	}
	switch {
	case s.CSI != nil:
		kept.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: s.CSI.Driver, VolumeHandle: s.CSI.VolumeHandle,
			ReadOnly: s.CSI.ReadOnly}
	case s.GCEPersistentDisk != nil:
		kept.Spec.GCEPersistentDisk = s.GCEPersistentDisk
	case s.AWSElasticBlockStore != nil:
		kept.Spec.AWSElasticBlockStore = s.AWSElasticBlockStore
	case s.AzureDisk != nil:
		kept.Spec.AzureDisk = s.AzureDisk
	}
	return kept
}

func keepClaimSpec(s v1.PersistentVolumeClaimSpec) v1.PersistentVolumeClaimSpec {
	return v1.PersistentVolumeClaimSpec{AccessModes: s.AccessModes, Selector: s.Selector, Resources: s.Resources,
		VolumeName:       s.VolumeName,
		StorageClassName: s.StorageClassName, VolumeMode: s.VolumeMode}
}
