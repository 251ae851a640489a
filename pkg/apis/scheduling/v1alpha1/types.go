package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodGroupLabel is the pod label that names the pod's PodGroup, in the namespace of the pod.
const PodGroupLabel = GroupName + "/pod-group"

// PodGroupPhase is the coarse state of a PodGroup.
type PodGroupPhase string

// The phases of a PodGroup, in the order in which they usually come.
const (
	// PodGroupPending means that fewer than minMember pods exist.
	PodGroupPending PodGroupPhase = "Pending"
	// PodGroupPreScheduling means that all pods that the group needs exist and that there is no room for them yet.
	PodGroupPreScheduling PodGroupPhase = "PreScheduling"
	// PodGroupScheduling means that the group is being bound, or has lost members that are being replaced.
	PodGroupScheduling PodGroupPhase = "Scheduling"
	// PodGroupScheduled means that minMember pods are bound and that not all of them run yet.
	PodGroupScheduled PodGroupPhase = "Scheduled"
	// PodGroupRunning means that minMember pods run or have succeeded.
	PodGroupRunning PodGroupPhase = "Running"
	// PodGroupUnknown means that the state of some pods cannot be told, for instance because their node is gone.
	PodGroupUnknown PodGroupPhase = "Unknown"
	// PodGroupFinished means that minMember pods have succeeded, and none is left to run.
	PodGroupFinished PodGroupPhase = "Finished"
	// PodGroupFailed means that pods have failed and that the minimum cannot be reached without new ones.
	PodGroupFailed PodGroupPhase = "Failed"
)

// The condition types of a PodGroup.
const (
	// PodGroupQuorum is true while at least minMember pods of the group exist.
	PodGroupQuorum = "Quorum"
	// PodGroupScheduledCondition is true while at least minMember pods are bound or have succeeded; while it is false
	// its message says in numbers what is missing.
	PodGroupScheduledCondition = "Scheduled"
	// PodGroupDegraded is true while a group that had started has lost members and has fewer than minMember.
	PodGroupDegraded = "Degraded"
	// PodGroupReserved is true while nodes are reserved for a group that waits; its message says how many, what has to end
	// there, and when the group starts if that is known. A group that never had a reservation does not have it.
	PodGroupReserved = "Reserved"
	// PodGroupDeadlineMissed is true if a group cannot end by the deadline of its pods anymore, with the run time that
	// they declare. A group that could always end in time does not have it.
	PodGroupDeadlineMissed = "DeadlineMissed"
)

// PodGroupMinimumRaised is the reason of PodGroupDegraded if it is false and the group has fewer members than the
// minimum only because that was raised after the start.
const PodGroupMinimumRaised = "MinimumRaised"

// PodGroup is a set of pods that start together or not at all.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={pg,pgs}
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="MinMember",type=integer,JSONPath=`.spec.minMember`
// +kubebuilder:printcolumn:name="Scheduled",type=integer,JSONPath=`.status.scheduled`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="Starts",type=string,JSONPath=`.status.estimatedStart.time`
// +kubebuilder:printcolumn:name="Succeeded",type=integer,JSONPath=`.status.succeeded`,priority=1
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Scheduled")].message`
type PodGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what the group asks for.
	Spec PodGroupSpec `json:"spec,omitempty"`
	// status is what the scheduler has observed of the group.
	Status PodGroupStatus `json:"status,omitempty"`
}

// PodGroupSpec is what a group asks for.
type PodGroupSpec struct {
	// minMember is the number of pods that have to be placed together: fewer are never bound. Absent, it is 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MinMember int32 `json:"minMember,omitempty"`
	// minResources is what the cluster has to have free before placing the group is tried at all. Absent, nothing
	// has to be.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, !string(self[k]).startsWith('-'))",message="minResources must not be negative"
	MinResources corev1.ResourceList `json:"minResources,omitempty"`
	// scheduleTimeoutSeconds is how long members may hold their nodes while the others are being reserved, at most 900.
	// Absent or 0, the scheduler's configuration decides.
	// +kubebuilder:validation:Minimum=0
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`
}

// PodGroupStatus is what the scheduler has observed of a group.
type PodGroupStatus struct {
	// phase is the coarse state of the group.
	Phase PodGroupPhase `json:"phase,omitempty"`
	// occupiedBy names the owner (namespace/name) of the pods that make up the group.
	OccupiedBy string `json:"occupiedBy,omitempty"`
	// scheduled is the number of pods that are bound and have not finished.
	Scheduled int32 `json:"scheduled,omitempty"`
	// running is the number of pods that run.
	Running int32 `json:"running,omitempty"`
	// succeeded is the number of pods that have finished well.
	Succeeded int32 `json:"succeeded,omitempty"`
	// failed is the number of pods that have failed.
	Failed int32 `json:"failed,omitempty"`
	// roles counts the members by role, where members have one.
	// +listType=map
	// +listMapKey=name
	Roles []PodGroupRole `json:"roles,omitempty"`
	// scheduleStartTime is when the pods that the group needs existed for the first time.
	ScheduleStartTime metav1.Time `json:"scheduleStartTime,omitempty"`
	// reservedNodes are the nodes that are reserved for the group while the condition Reserved is true, by name.
	// +listType=set
	ReservedNodes []string `json:"reservedNodes,omitempty"`
	// estimatedStart is when the group starts, while nodes are reserved for it and it follows from what is declared of the
	// run times of pods, and from their limits.
	EstimatedStart *PodGroupEstimatedStart `json:"estimatedStart,omitempty"`
	// conditions are the latest observations of the group: Quorum, Scheduled, Degraded, Reserved.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PodGroupEstimatedStart is when a group that waits is expected to start.
type PodGroupEstimatedStart struct {
	// time is the start.
	Time metav1.Time `json:"time"`
	// waitsFor says which pod has to end last.
	WaitsFor string `json:"waitsFor,omitempty"`
}

// PodGroupRole counts the members of one role.
type PodGroupRole struct {
	// name of the role.
	Name string `json:"name"`
	// minMember is how many have to start together; 0 for a role without a minimum.
	MinMember int32 `json:"minMember"`
	// existing is the number of pods that can be placed, are bound or have succeeded.
	Existing int32 `json:"existing"`
	// scheduled is the number of pods that are bound or have succeeded.
	Scheduled int32 `json:"scheduled"`
}

// PodGroupList is a list of PodGroups.
//
// +kubebuilder:object:root=true
type PodGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PodGroup `json:"items"`
}
