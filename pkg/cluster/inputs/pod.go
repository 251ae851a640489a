package inputs

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang/runview"
	"berth.dev/berth/pkg/gpu/gpuview"
)

// KeepPod returns what Keep keeps of a pod.
func KeepPod(p *v1.Pod) *v1.Pod {
	s := &p.Spec
	kept := &v1.Pod{
		ObjectMeta: keepMeta(p.ObjectMeta),
		Spec: v1.PodSpec{
			NodeName: s.NodeName, SchedulerName: s.SchedulerName, NodeSelector: s.NodeSelector, Affinity: s.Affinity,
			Tolerations: s.Tolerations, TopologySpreadConstraints: s.TopologySpreadConstraints,
			Priority: s.Priority, PriorityClassName: s.PriorityClassName, PreemptionPolicy: s.PreemptionPolicy,
			SchedulingGates: s.SchedulingGates, SchedulingGroup: s.SchedulingGroup,
			Overhead: s.Overhead, Resources: s.Resources, ResourceClaims: s.ResourceClaims, RuntimeClassName: s.RuntimeClassName,
			OS: s.OS, HostNetwork: s.HostNetwork, RestartPolicy: s.RestartPolicy,
			TerminationGracePeriodSeconds: s.TerminationGracePeriodSeconds, ActiveDeadlineSeconds: s.ActiveDeadlineSeconds,
		},
		Status: v1.PodStatus{
			Phase: p.Status.Phase, StartTime: p.Status.StartTime, NominatedNodeName: p.Status.NominatedNodeName,
			ResourceClaimStatuses:       p.Status.ResourceClaimStatuses,
			ExtendedResourceClaimStatus: p.Status.ExtendedResourceClaimStatus,
			AllocatedResources:          p.Status.AllocatedResources, Resources: p.Status.Resources,
			NodeAllocatableResourceClaimStatuses: p.Status.NodeAllocatableResourceClaimStatuses,
			ContainerStatuses:                    keepContainerStatuses(p.Status.ContainerStatuses),
			InitContainerStatuses:                keepContainerStatuses(p.Status.InitContainerStatuses),
		},
	}
	kept.Spec.Containers = keepContainers(s.Containers)
	kept.Spec.InitContainers = keepContainers(s.InitContainers)
	for i := range s.Volumes {
		if volume, ok := keepVolume(&s.Volumes[i]); ok {
			kept.Spec.Volumes = append(kept.Spec.Volumes, volume)
		}
	}
	for _, c := range p.Status.Conditions {
		condition := v1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason,
			LastTransitionTime: c.LastTransitionTime}
		switch c.Type {
		case v1.PodScheduled, gpuview.GPUsAssigned, runview.DeadlineMissed:
			condition.Message = c.Message
		}
		kept.Status.Conditions = append(kept.Status.Conditions, condition)
	}
	return kept
}

func keepContainers(containers []v1.Container) []v1.Container {
	var kept []v1.Container
	for i := range containers {
		c := &containers[i]
		k := v1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources, ResizePolicy: c.ResizePolicy,
			RestartPolicy: c.RestartPolicy}
		for _, p := range c.Ports {
			if p.HostPort != 0 {
				k.Ports = append(k.Ports, v1.ContainerPort{HostPort: p.HostPort, HostIP: p.HostIP, ContainerPort: p.ContainerPort,
					Protocol: p.Protocol})
			}
		}
		kept = append(kept, k)
	}
	return kept
}

// keepContainerStatuses keeps the allocated resources, which differ from the spec during a resize.
func keepContainerStatuses(statuses []v1.ContainerStatus) []v1.ContainerStatus {
	var kept []v1.ContainerStatus
	for i := range statuses {
		if s := &statuses[i]; s.AllocatedResources != nil || s.Resources != nil {
			kept = append(kept, v1.ContainerStatus{Name: s.Name, AllocatedResources: s.AllocatedResources,
				Resources: s.Resources})
		}
	}
	return kept
}

// keepVolume keeps the volumes that restrict the nodes of a pod, without their secrets.
func keepVolume(v *v1.Volume) (v1.Volume, bool) {
	kept := v1.Volume{Name: v.Name}
	switch {
	case v.PersistentVolumeClaim != nil:
		kept.PersistentVolumeClaim = v.PersistentVolumeClaim
	case v.Ephemeral != nil:
		// The dump has the claim that was made from the template. The scheduler only checks that there is a template.
		kept.Ephemeral = &v1.EphemeralVolumeSource{}
		if t := v.Ephemeral.VolumeClaimTemplate; t != nil {
			kept.Ephemeral.VolumeClaimTemplate = &v1.PersistentVolumeClaimTemplate{Spec: keepClaimSpec(t.Spec)}
		}
	case v.CSI != nil:
		kept.CSI = &v1.CSIVolumeSource{Driver: v.CSI.Driver, ReadOnly: v.CSI.ReadOnly}
	case v.GCEPersistentDisk != nil:
		kept.GCEPersistentDisk = v.GCEPersistentDisk
	case v.AWSElasticBlockStore != nil:
		kept.AWSElasticBlockStore = v.AWSElasticBlockStore
	case v.AzureDisk != nil:
		kept.AzureDisk = v.AzureDisk
	case v.ISCSI != nil:
		kept.ISCSI = &v1.ISCSIVolumeSource{TargetPortal: v.ISCSI.TargetPortal, IQN: v.ISCSI.IQN, Lun: v.ISCSI.Lun,
			ReadOnly: v.ISCSI.ReadOnly}
	case v.RBD != nil:
		kept.RBD = &v1.RBDVolumeSource{CephMonitors: v.RBD.CephMonitors, RBDImage: v.RBD.RBDImage, RBDPool: v.RBD.RBDPool,
			ReadOnly: v.RBD.ReadOnly}
	default:
		return kept, false
	}
	return kept, true
}
