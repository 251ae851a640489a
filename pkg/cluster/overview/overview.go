package overview

import (
	"time"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/podview"
)

// Cluster is a cluster at one moment.
type Cluster struct {
	// Taken is the moment.
	Taken  time.Time `json:"taken"`
	Totals Totals    `json:"totals"`
	// Nodes are those with GPUs, by domain, model and name.
	Nodes []Node `json:"nodes"`
	// Namespaces are those with pods that ask for GPUs or wait, by name.
	Namespaces []Namespace `json:"namespaces"`
	// Queue are the pods and gangs without a node, in the order of each scheduler: priority, then age.
	Queue []Waiting `json:"queue"`
	// Gangs are those that have not ended, the waiting ones first.
	Gangs []Gang `json:"gangs"`
	// Jobs are the workloads that have not ended, those first that are furthest from running. Queues are Kueue's, by name.
	Jobs   []Job   `json:"jobs"`
	Queues []Queue `json:"queues"`
	// Warnings are the latest events of type Warning, the newest first.
	Warnings []Warning `json:"warnings"`
	// LeftOut are the kinds that could not be read, and devices that do not count yet, each with the reason.
	LeftOut []string `json:"leftOut"`
}

// Totals are sums over the cluster.
type Totals struct {
	// Nodes of the cluster, those with GPUs, and all nodes with a pod that does not belong to the node.
	Nodes         int `json:"nodes"`
	NodesWithGPUs int `json:"nodesWithGPUs"`
	NodesInUse    int `json:"nodesInUse"`
	// GPUs of the cluster, and those that no pod can use now: faulty ones, and idle ones of unschedulable nodes.
	GPUs            int `json:"gpus"`
	UnavailableGPUs int `json:"unavailableGPUs"`
	// AllocatedMilliGPU is in use. IdleMilliGPU is available. StrandedMilliGPU is the part of the latter that no pod of
	// the cluster could use.
	AllocatedMilliGPU int64 `json:"allocatedMilliGPU"`
	IdleMilliGPU      int64 `json:"idleMilliGPU"`
	StrandedMilliGPU  int64 `json:"strandedMilliGPU"`
	// MicroDollarsPerHour is the cost of all nodes with a known price, and IdleMicroDollarsPerHour the part that no pod
	// has requested.
	MicroDollarsPerHour     price.MicroDollars `json:"microDollarsPerHour"`
	IdleMicroDollarsPerHour price.MicroDollars `json:"idleMicroDollarsPerHour"`
	// NodesWithoutPrice have no known price.
	NodesWithoutPrice int `json:"nodesWithoutPrice"`
	// PendingPods have no node. GatedPods are those of them with scheduling gates.
	PendingPods int `json:"pendingPods"`
	GatedPods   int `json:"gatedPods"`
	// PendingGangs have fewer members on nodes than they need.
	PendingGangs int `json:"pendingGangs"`
}

// NodeState says whether a node accepts pods.
type NodeState string

// The states of a node. A cordoned or leaving node may run pods, but accepts no more.
const (
	Ready    NodeState = "Ready"
	NotReady NodeState = "NotReady"
	Cordoned NodeState = "Cordoned"
	Leaving  NodeState = "Leaving"
)

// Sharing says how the GPUs of a node are allocated.
type Sharing string

// GPUs are allocated by the device plugin, by Berth in shares, or by resource claims.
const (
	DevicePlugin Sharing = "DevicePlugin"
	Shared       Sharing = "Shared"
	Claims       Sharing = "Claims"
)

// Node is a node with GPUs.
type Node struct {
	Name string `json:"name"`
	// Model, Domain (the narrowest one of the network) and Zone are empty if no label has them.
	Model  string         `json:"model,omitempty"`
	Domain podview.Domain `json:"domain,omitzero"`
	Zone   string         `json:"zone,omitempty"`
	State  NodeState      `json:"state"`
	// Sharing says how the GPUs are allocated.
	Sharing Sharing `json:"sharing"`
	// GPUs in the order of their indices if these are known. Else only the sums are right.
	GPUs              []GPU `json:"gpus"`
	AllocatedMilliGPU int64 `json:"allocatedMilliGPU"`
	IdleMilliGPU      int64 `json:"idleMilliGPU"`
	StrandedMilliGPU  int64 `json:"strandedMilliGPU"`
	// FreeCPUMilli is in milli-cores, FreeMemoryMiB of the host.
	FreeCPUMilli  int64 `json:"freeCPUMilli"`
	FreeMemoryMiB int64 `json:"freeMemoryMiB"`
	// Pods counts those that do not belong to the node.
	Pods int `json:"pods"`
	// Use are the workloads with GPUs of the node, the largest part first.
	Use []Use `json:"use"`
	// Priced says that the price is known.
	Priced                  bool               `json:"priced"`
	MicroDollarsPerHour     price.MicroDollars `json:"microDollarsPerHour"`
	IdleMicroDollarsPerHour price.MicroDollars `json:"idleMicroDollarsPerHour"`
}

// Use is the part of a node's GPUs that a workload has.
type Use struct {
	// Workload is namespace/name of a Job.
	Workload string `json:"workload"`
	MilliGPU int64  `json:"milliGPU"`
}

// Namespace sums up the pods of a namespace.
type Namespace struct {
	Name string `json:"name"`
	// Pods have a node and PendingPods do not. MilliGPU and PendingMilliGPU are their GPUs.
	Pods            int   `json:"pods"`
	PendingPods     int   `json:"pendingPods"`
	MilliGPU        int64 `json:"milliGPU"`
	PendingMilliGPU int64 `json:"pendingMilliGPU"`
	// MicroDollarsPerHour is the share of its pods in the cost of their nodes with a known price.
	MicroDollarsPerHour price.MicroDollars `json:"microDollarsPerHour"`
}

// GPUState is the state of one GPU.
type GPUState string

// The states of a GPU. A stranded GPU is idle, at least in part, and no pod of the cluster could use that part.
const (
	Free        GPUState = "Free"
	Allocated   GPUState = "Allocated"
	Partial     GPUState = "Partial"
	Stranded    GPUState = "Stranded"
	Unavailable GPUState = "Unavailable"
)

// GPU is one physical GPU.
type GPU struct {
	State GPUState `json:"state"`
	// UsedMilliGPU is the allocated part.
	UsedMilliGPU int `json:"usedMilliGPU"`
}

// Waiting is a pod or a gang that has no node yet.
type Waiting struct {
	// Position in the order of its scheduler, from 1; 0 with scheduling gates.
	Position  int    `json:"position"`
	Namespace string `json:"namespace"`
	// Name of the pod, or of the gang.
	Name string `json:"name"`
	// Gang says that it is a gang, Pods how many of its pods wait; Pod is one of them.
	Gang bool   `json:"gang"`
	Pods int    `json:"pods"`
	Pod  string `json:"pod"`
	// MilliGPU is requested by these pods. Slices and claims do not count.
	MilliGPU  int64  `json:"milliGPU"`
	Priority  int32  `json:"priority"`
	Scheduler string `json:"scheduler"`
	// WaitSeconds is the age of the oldest of the pods.
	WaitSeconds float64 `json:"waitSeconds"`
	// Nominated is the node from which pods are being evicted for it.
	Nominated string `json:"nominated,omitempty"`
	// Reason is the scheduler's latest reason, empty before its first attempt.
	Reason string `json:"reason"`
}

// Gang is a group of pods that start together.
type Gang struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// MinMember pods start together; Members exist, Scheduled of them have a node or have succeeded, Running run.
	MinMember int `json:"minMember"`
	Members   int `json:"members"`
	// Groups are the requirements of the groups within the gang, empty if it has none.
	Groups    string `json:"groups,omitempty"`
	Scheduled int    `json:"scheduled"`
	Running   int    `json:"running"`
	// MilliGPU is requested by the existing members.
	MilliGPU int64 `json:"milliGPU"`
	// Nodes is the number of nodes with members.
	Nodes    int   `json:"nodes"`
	Priority int32 `json:"priority"`
	// Phase is that of the PodGroup, empty without one.
	Phase string `json:"phase,omitempty"`
	// Started says that enough members have a node.
	Started bool `json:"started"`
	// WaitSeconds is the age of the gang, 0 once it has started.
	WaitSeconds float64 `json:"waitSeconds"`
	// Reason is the scheduler's latest reason why the gang waits.
	Reason string `json:"reason"`
	// Reserved says which nodes are reserved for it and what is missing, or when it is expected to start.
	Reserved string `json:"reserved,omitempty"`
	// Late is a deadline that it can no longer keep, empty if there is none.
	Late string `json:"late,omitempty"`
}

// Warning is an event of type Warning.
type Warning struct {
	Time      time.Time `json:"time"`
	Namespace string    `json:"namespace,omitempty"`
	// Object is kind/name.
	Object  string `json:"object"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Count is the number of occurrences.
	Count int32 `json:"count"`
}
