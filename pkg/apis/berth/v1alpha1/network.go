package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReleasePolicy says when an address is free again.
//
// +kubebuilder:validation:Enum=Retain;OnPodDeletion;OnStatefulSetDeletion
type ReleasePolicy string

const (
	// Retain keeps the reservation until it is deleted by hand.
	Retain ReleasePolicy = "Retain"
	// OnPodDeletion frees the address when the pod is gone.
	OnPodDeletion ReleasePolicy = "OnPodDeletion"
	// OnStatefulSetDeletion frees the address when the StatefulSet and the pod are gone. A pod that belongs to no
	// StatefulSet gives its address back as with OnPodDeletion.
	OnStatefulSetDeletion ReleasePolicy = "OnStatefulSetDeletion"
)

// IPPool holds addresses that pods can ask for with the annotation berth.dev/ip-pool.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Addresses",type=integer,JSONPath=`.status.addresses`
// +kubebuilder:printcolumn:name="Used",type=integer,JSONPath=`.status.used`
// +kubebuilder:printcolumn:name="Free",type=integer,JSONPath=`.status.free`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=='Accepted')].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type IPPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec holds the addresses.
	Spec IPPoolSpec `json:"spec"`
	// status is what the scheduler has observed of the pool.
	Status IPPoolStatus `json:"status,omitempty"`
}

// IPPoolStatus is what the scheduler has observed of a pool. A range counts as 2^48 addresses at most.
type IPPoolStatus struct {
	// addresses is how many the pool has.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Addresses int64 `json:"addresses"`
	// used is how many of them are reserved, or about to be.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Used int64 `json:"used"`
	// free is how many of them pods can be given.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Free int64 `json:"free"`
	// conditions say whether the pool can be used.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// IPPoolSpec holds the addresses of a pool.
type IPPoolSpec struct {
	// subnets are the addresses by the place where they are routable. Earlier ones are used first.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Subnets []Subnet `json:"subnets"`
	// namespaces are those whose pods may use the pool. Default: all.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces,omitempty"`
	// releasePolicy of the reservations that are made from the pool. Default OnStatefulSetDeletion.
	// +kubebuilder:default=OnStatefulSetDeletion
	ReleasePolicy ReleasePolicy `json:"releasePolicy,omitempty"`
}

// Subnet is a set of addresses that are routable in the same place.
type Subnet struct {
	// domain is the place. Default: every node.
	Domain *Domain `json:"domain,omitempty"`
	// ranges are CIDRs (10.0.0.0/24), ranges (10.0.0.10-10.0.0.20) or single addresses, each of them once in a pool. Of a
	// CIDR the first address is not used, nor is the last one of an IPv4 CIDR; networks of one or two addresses are used as
	// a whole.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=80
	// +kubebuilder:validation:XValidation:rule="self.all(r, isCIDR(r) || isIP(r) || (r.split('-').size() == 2 && r.split('-').all(a, isIP(a))))",message="a range is a CIDR, an address, or two addresses joined by a hyphen"
	Ranges []string `json:"ranges"`
}

// Domain is the nodes with a label.
type Domain struct {
	// key of the label, such as topology.kubernetes.io/rack or kubernetes.io/hostname.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
	// value of the label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value"`
}

// IPReservation keeps an address for a pod. Its name is derived from the address, so that an address cannot be reserved
// twice: 10.0.0.5 is ip-10-0-0-5, and 2001:db8::5 is ip-2001-db8--5.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=ipr
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.spec.address`
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.pool`
// +kubebuilder:printcolumn:name="Domain",type=string,JSONPath=`.spec.domain.value`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.pod.namespace`
// +kubebuilder:printcolumn:name="Pod",type=string,JSONPath=`.spec.pod.name`
// +kubebuilder:printcolumn:name="Release",type=string,JSONPath=`.spec.releasePolicy`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'ip-' + (self.spec.address.endsWith(':') ? self.spec.address + '0' : self.spec.address).replace('.', '-').replace(':', '-')",message="the name must be ip- and the address, with hyphens instead of dots and colons, and 0 at the end of an address that ends in a colon"
type IPReservation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says what is reserved for which pod.
	Spec IPReservationSpec `json:"spec"`
}

// IPReservationSpec says what is reserved for which pod.
//
// +kubebuilder:validation:XValidation:rule="self.address == oldSelf.address && self.pod == oldSelf.pod",message="address and pod cannot be changed: delete the reservation and create another"
type IPReservationSpec struct {
	// address that is reserved, in canonical form.
	// +kubebuilder:validation:MaxLength=39
	// +kubebuilder:validation:XValidation:rule="isIP(self) && ip.isCanonical(self)",message="address must be an IPv4 or IPv6 address in canonical form"
	Address string `json:"address"`
	// pool that the address was taken from, if any.
	// +kubebuilder:validation:MaxLength=253
	Pool string `json:"pool,omitempty"`
	// domain is where the address is routable. The pod runs only there. Default: every node.
	Domain *Domain `json:"domain,omitempty"`
	// pod is who the address is for.
	Pod PodIdentity `json:"pod"`
	// podUID is the UID of the pod that was last given the address. While it is empty, the address is not released.
	// +kubebuilder:validation:MaxLength=64
	PodUID string `json:"podUID,omitempty"`
	// releasePolicy says when the reservation is deleted. Default Retain.
	// +kubebuilder:default=Retain
	ReleasePolicy ReleasePolicy `json:"releasePolicy,omitempty"`
}

// PodIdentity names a pod that may be deleted and come back under its name.
type PodIdentity struct {
	// namespace of the pod.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// name of the pod.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// statefulSet that the pod belongs to, if any. With OnStatefulSetDeletion, the address is kept as long as there is one
	// of that name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StatefulSet string `json:"statefulSet,omitempty"`
}

// IPPoolList is a list of IPPools.
//
// +kubebuilder:object:root=true
type IPPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IPPool `json:"items"`
}

// IPReservationList is a list of IPReservations.
//
// +kubebuilder:object:root=true
type IPReservationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IPReservation `json:"items"`
}
