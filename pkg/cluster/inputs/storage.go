package inputs

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func keepStorage(obj *unstructured.Unstructured) (runtime.Object, error) {
	switch obj.GetKind() {
	case "PersistentVolume":
		return keepAs(obj, keepVolumeObject)
	case "PersistentVolumeClaim":
		return keepAs(obj, func(c *v1.PersistentVolumeClaim) *v1.PersistentVolumeClaim {
			return &v1.PersistentVolumeClaim{ObjectMeta: keepMeta(c.ObjectMeta), Spec: keepClaimSpec(c.Spec),
				Status: v1.PersistentVolumeClaimStatus{Phase: c.Status.Phase, AccessModes: c.Status.AccessModes,
					Capacity: c.Status.Capacity}}
		})
	case "StorageClass":
		return keepAs(obj, func(c *storagev1.StorageClass) *storagev1.StorageClass {
			return &storagev1.StorageClass{ObjectMeta: keepMeta(c.ObjectMeta), Provisioner: c.Provisioner,
				ReclaimPolicy:     c.ReclaimPolicy,
				VolumeBindingMode: c.VolumeBindingMode, AllowedTopologies: c.AllowedTopologies}
		})
	case "CSINode":
		return keepAs(obj, func(n *storagev1.CSINode) *storagev1.CSINode {
			return &storagev1.CSINode{ObjectMeta: keepMeta(n.ObjectMeta), Spec: n.Spec}
		})
	case "CSIDriver":
		return keepAs(obj, func(d *storagev1.CSIDriver) *storagev1.CSIDriver {
			return &storagev1.CSIDriver{ObjectMeta: keepMeta(d.ObjectMeta),
				Spec: storagev1.CSIDriverSpec{StorageCapacity: d.Spec.StorageCapacity, AttachRequired: d.Spec.AttachRequired}}
		})
	case "CSIStorageCapacity":
		return keepAs(obj, func(c *storagev1.CSIStorageCapacity) *storagev1.CSIStorageCapacity {
			return &storagev1.CSIStorageCapacity{ObjectMeta: keepMeta(c.ObjectMeta), NodeTopology: c.NodeTopology,
				StorageClassName: c.StorageClassName, Capacity: c.Capacity, MaximumVolumeSize: c.MaximumVolumeSize}
		})
	case "VolumeAttachment":
		return keepAs(obj, func(a *storagev1.VolumeAttachment) *storagev1.VolumeAttachment {
			return &storagev1.VolumeAttachment{ObjectMeta: keepMeta(a.ObjectMeta),
				Spec: storagev1.VolumeAttachmentSpec{Attacher: a.Spec.Attacher, NodeName: a.Spec.NodeName,
					Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: a.Spec.Source.PersistentVolumeName}},
				Status: storagev1.VolumeAttachmentStatus{Attached: a.Status.Attached}}
		})
	}
	return nil, fmt.Errorf("nothing is known of kind %s", obj.GetKind())
}

// keepVolumeObject keeps of a volume's source what identifies it to limits and zones.
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

// keepDevices keeps the objects of dynamic resource allocation without the drivers' own parameters, which no scheduler
// reads.
func keepDevices(obj *unstructured.Unstructured) (runtime.Object, error) {
	switch obj.GetKind() {
	case "DeviceClass":
		return keepAs(obj, func(c *resourcev1.DeviceClass) *resourcev1.DeviceClass {
			c.Spec.Config = nil
			return &resourcev1.DeviceClass{ObjectMeta: keepMeta(c.ObjectMeta), Spec: c.Spec}
		})
	case "ResourceSlice":
		return keepAs(obj, func(s *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
			return &resourcev1.ResourceSlice{ObjectMeta: keepMeta(s.ObjectMeta), Spec: s.Spec}
		})
	case "DeviceTaintRule":
		return keepAs(obj, func(r *resourcev1.DeviceTaintRule) *resourcev1.DeviceTaintRule {
			return &resourcev1.DeviceTaintRule{ObjectMeta: keepMeta(r.ObjectMeta), Spec: r.Spec}
		})
	case "ResourceClaim":
		return keepAs(obj, func(c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
			c.Spec.Devices.Config = nil
			if a := c.Status.Allocation; a != nil {
				a.Devices.Config = nil
			}
			return &resourcev1.ResourceClaim{ObjectMeta: keepMeta(c.ObjectMeta), Spec: c.Spec,
				Status: resourcev1.ResourceClaimStatus{Allocation: c.Status.Allocation, ReservedFor: c.Status.ReservedFor}}
		})
	}
	return nil, fmt.Errorf("nothing is known of kind %s", obj.GetKind())
}
