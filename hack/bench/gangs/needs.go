package main

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/hack/bench/live"
	"berth.dev/berth/hack/bench/rig"
)

const (
	// driver names the devices of -distinct claim; each node has that many.
	driver         = "bench.example.com"
	devicesPerNode = 64
)

// prepare creates what the members of -distinct claim and volume need one each of, before anything is measured.
func prepare(bed *live.Bed) {
	switch *distinct {
	case "claim":
		prepareClaims(bed)
	case "volume":
		live.CreateAll(*gangs**size, func(i int) { createVolume(bed, i) })
	}
}

func needName(i int) string { return fmt.Sprintf("need-%d", i) }

func needsClaim(pod *v1.Pod, i int) {
	pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "device", ResourceClaimName: ptr.To(needName(i))}}
	pod.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "device"}}
}

func needsVolume(pod *v1.Pod, i int) {
	pod.Spec.Volumes = []v1.Volume{{Name: "data",
		VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: needName(i)}}}}
}

// prepareClaims gives each node devices, and each member a claim for one of them.
func prepareClaims(bed *live.Bed) {
	ctx, api := bed.Context(), bed.Client.ResourceV1()
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "bench"}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf(
			"device.driver == %q", driver)}}}}}
	rig.Must(api.DeviceClasses().Create(ctx, class, metav1.CreateOptions{}))
	list := rig.Must(bed.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}))
	devices := make([]resourcev1.Device, devicesPerNode)
	for i := range devices {
		devices[i].Name = fmt.Sprintf("device-%d", i)
	}
	live.CreateAll(len(list.Items), func(i int) {
		name := list.Items[i].Name
		rig.Must(api.ResourceSlices().Create(ctx, &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourcev1.ResourceSliceSpec{Driver: driver, NodeName: ptr.To(name), Devices: devices,
				Pool: resourcev1.ResourcePool{Name: name, ResourceSliceCount: 1}}}, metav1.CreateOptions{}))
	})
	live.CreateAll(*gangs**size, func(i int) {
		rig.Must(api.ResourceClaims(attacker).Create(ctx, &resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: needName(i)}, Spec: resourcev1.ResourceClaimSpec{
				Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "one",
					Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class.Name}}}}}}, metav1.CreateOptions{}))
	})
}

// createVolume creates a volume that is bound to its claim.
func createVolume(bed *live.Bed, i int) {
	size := v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: needName(i)}, Spec: v1.PersistentVolumeSpec{
		Capacity: size, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
		PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: driver,
			VolumeHandle: needName(i)}},
		ClaimRef: &v1.ObjectReference{Namespace: attacker, Name: needName(i)}}}
	rig.Must(bed.Client.CoreV1().PersistentVolumes().Create(bed.Context(), volume, metav1.CreateOptions{}))
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: needName(i),
		Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
		Spec: v1.PersistentVolumeClaimSpec{AccessModes: volume.Spec.AccessModes, VolumeName: volume.Name,
			StorageClassName: ptr.To(""), Resources: v1.VolumeResourceRequirements{Requests: size}}}
	rig.Must(bed.Client.CoreV1().PersistentVolumeClaims(attacker).Create(bed.Context(), claim, metav1.CreateOptions{}))
}
