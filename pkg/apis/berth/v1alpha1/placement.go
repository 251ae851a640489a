package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DatasetMode says whether a pod may run where its dataset is not.
//
// +kubebuilder:validation:Enum=Required;Preferred
type DatasetMode string

const (
	// Required keeps pods off all other nodes.
	Required DatasetMode = "Required"
	// Preferred ranks the nodes that hold the dataset first.
	Preferred DatasetMode = "Preferred"
)

// DefaultAction says what happens to a pod that no rule matches.
//
// +kubebuilder:validation:Enum=Allow;Deny
type DefaultAction string

const (
	// Allow lets the pod run on any node.
	Allow DefaultAction = "Allow"
	// Deny refuses the pod.
	Deny DefaultAction = "Deny"
)

// PlacementPolicy is a set of rules on where pods may run, for all pods that Berth schedules.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=plp
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Licenses",type=string,JSONPath=`.status.licenses[*].name`
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.licenses[*].used`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PlacementPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec holds the rules.
	Spec PlacementPolicySpec `json:"spec"`
	// status is what the scheduler has observed of the policy.
	Status PlacementPolicyStatus `json:"status,omitempty"`
}

// PlacementPolicySpec holds the rules of a policy. A rule that cannot be evaluated, because an expression does not
// compile or fails for a pod or a node, refuses the pods that it may concern.
//
// +kubebuilder:validation:XValidation:rule="has(self.licenses) || has(self.datasets) || has(self.compliance)",message="a policy needs licenses, datasets or compliance"
type PlacementPolicySpec struct {
	// licenses limit how many pods use a license at the same time.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Licenses []LicenseRule `json:"licenses,omitempty"`
	// datasets say which nodes hold which data.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Datasets []DatasetRule `json:"datasets,omitempty"`
	// compliance binds pods to nodes.
	Compliance *Compliance `json:"compliance,omitempty"`
}

// LicenseRule limits the use of a license in a pool of nodes. All rules on a license that cover a node hold there; on a
// node that none covers the license is not available.
//
// +kubebuilder:validation:XValidation:rule="!has(self.perPod) || has(self.pods)",message="perPod needs pods"
type LicenseRule struct {
	// name of the rule within the policy.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
	// license is the name by which pods ask for it, in the annotation berth.dev/licenses. Default: the rule's name.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	License string `json:"license,omitempty"`
	// count is how many licenses there are.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Count int32 `json:"count"`
	// pods selects pods that use the license whether they ask for it or not.
	Pods *PodSelector `json:"pods,omitempty"`
	// perPod is how many licenses a pod that is selected uses at least. Default 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	PerPod *int32 `json:"perPod,omitempty"`
	// nodes are the pool in which the licenses may be used. Default: all nodes.
	Nodes *NodeSelector `json:"nodes,omitempty"`
}

// DatasetRule says which nodes hold a dataset. Where several rules are about one dataset, each adds nodes that hold it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.weight) || self.mode == 'Preferred'",message="weight needs mode Preferred"
type DatasetRule struct {
	// name of the rule within the policy.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
	// dataset is the name by which pods name it, in the annotation berth.dev/datasets. Default: the rule's name.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Dataset string `json:"dataset,omitempty"`
	// pods selects pods that use the dataset whether they name it or not.
	Pods *PodSelector `json:"pods,omitempty"`
	// nodes are those that hold the dataset, or are near it.
	Nodes NodeSelector `json:"nodes"`
	// mode says whether pods may run elsewhere. Default Preferred.
	// +kubebuilder:default=Preferred
	Mode DatasetMode `json:"mode,omitempty"`
	// weight is how good these nodes are, from 1 to 100: 100 for a copy on the node, less for one in the same zone. Default
	// 100.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight *int32 `json:"weight,omitempty"`
}

// Compliance binds pods to nodes.
//
// +kubebuilder:validation:XValidation:rule="has(self.rules) || self.defaultAction == 'Deny'",message="compliance needs rules or defaultAction Deny"
type Compliance struct {
	// pods are those that this part of the policy is about. Default: all pods.
	Pods *PodSelector `json:"pods,omitempty"`
	// defaultAction says what happens to such a pod if no rule matches it. Default Allow.
	// +kubebuilder:default=Allow
	DefaultAction DefaultAction `json:"defaultAction,omitempty"`
	// rules bind pods to nodes. A pod that several rules match may run only on nodes of all of them.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Rules []ComplianceRule `json:"rules,omitempty"`
}

// ComplianceRule binds pods to nodes.
type ComplianceRule struct {
	// name of the rule within the policy.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
	// pods that are bound. Default: all that compliance is about.
	Pods *PodSelector `json:"pods,omitempty"`
	// nodes that the pods may run on.
	Nodes NodeSelector `json:"nodes"`
	// exclusive keeps all other pods that compliance is about off these nodes, except pods of DaemonSets.
	Exclusive bool `json:"exclusive,omitempty"`
}

// PodSelector selects pods. All parts that are given have to match.
//
// +kubebuilder:validation:XValidation:rule="has(self.namespaceSelector) || has(self.selector) || has(self.expression)",message="a pod selector needs namespaceSelector, selector or expression"
type PodSelector struct {
	// namespaceSelector selects namespaces by label. Every namespace has the label kubernetes.io/metadata.name.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// selector selects pods by label.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// expression is a CEL expression that yields true for the pods selected. It reads pod.namespace, pod.labels,
	// pod.annotations and pod.namespaceLabels.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression,omitempty"`
}

// NodeSelector selects nodes. All parts that are given have to match.
//
// +kubebuilder:validation:XValidation:rule="has(self.selector) || has(self.expression)",message="a node selector needs selector or expression"
type NodeSelector struct {
	// selector selects nodes by label.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// expression is a CEL expression that yields true for the nodes selected. It reads node.name and node.labels.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression,omitempty"`
}

// PlacementPolicyStatus is what the scheduler has observed of a policy.
type PlacementPolicyStatus struct {
	// observedGeneration is the generation of the spec that the status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// licenses tell how many licenses are in use, by rule.
	// +listType=map
	// +listMapKey=name
	Licenses []LicenseStatus `json:"licenses,omitempty"`
	// conditions are the latest observations of the policy: Accepted.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// LicenseStatus tells how many licenses are in use.
type LicenseStatus struct {
	// name of the rule.
	Name string `json:"name"`
	// used is how many licenses pods hold that run or are about to.
	Used int64 `json:"used"`
}

// PlacementPolicyList is a list of PlacementPolicies.
//
// +kubebuilder:object:root=true
type PlacementPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlacementPolicy `json:"items"`
}
