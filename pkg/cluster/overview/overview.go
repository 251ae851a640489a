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
	// Queue is what has no node yet, in the order of each scheduler: priority, then age. A gang is one entry.
	Queue []Waiting `json:"queue"`
	// Gangs are all of the cluster that have not ended, those that wait first.
	Gangs []Gang `json:"gangs"`
	// Jobs are the workloads that have not ended, those first that are furthest from running. Queues are Kueue's, by name.
	Jobs   []Job   `json:"jobs"`
	Queues []Queue `json:"queues"`
	// Warnings are the latest events of type Warning, the newest first.
	Warnings []Warning `json:"warnings"`
	// LeftOut is what could not be read, or is not counted yet, each with the reason.
	LeftOut []string `json:"leftOut"`
}

// Totals are sums over the cluster.
type Totals struct {
	// Nodes of the cluster, those with GPUs, and those of them on which a pod runs that is not the node's own.
	Nodes         int `json:"nodes"`
	NodesWithGPUs int `json:"nodesWithGPUs"`
	NodesInUse    int `json:"nodesInUse"`
	// GPUs there are, and those that no pod can use now: faulty ones, and idle ones of unschedulable nodes.
	GPUs            int `json:"gpus"`
	UnavailableGPUs int `json:"unavailableGPUs"`
	// AllocatedMilliGPU is in use, IdleMilliGPU is not and could be, and of it StrandedMilliGPU cannot be used by the
	// mix of requests in the cluster.
	AllocatedMilliGPU int64 `json:"allocatedMilliGPU"`
	IdleMilliGPU      int64 `json:"idleMilliGPU"`
	StrandedMilliGPU  int64 `json:"strandedMilliGPU"`
	// MicroDollarsPerHour is what all nodes with a known price cost, and IdleMicroDollarsPerHour the part of it that no
	// pod has asked for.
	MicroDollarsPerHour     price.MicroDollars `json:"microDollarsPerHour"`
	IdleMicroDollarsPerHour price.MicroDollars `json:"idleMicroDollarsPerHour"`
	// NodesWithoutPrice have no known price.
	NodesWithoutPrice int `json:"nodesWithoutPrice"`
	// PendingPods have no node, GatedPods among them are held back by their scheduling gates.
	PendingPods int `json:"pendingPods"`
	GatedPods   int `json:"gatedPods"`
	// PendingGangs have fewer members on nodes than they need.
	PendingGangs int `json:"pendingGangs"`
}

// NodeState says whether a node takes pods.
type NodeState string

// The states of a node. One that is cordoned or leaving may run pods and takes no more.
const (
	Ready    NodeState = "Ready"
	NotReady NodeState = "NotReady"
	Cordoned NodeState = "Cordoned"
	Leaving  NodeState = "Leaving"
)

// Sharing says who gives out the GPUs of a node.
type Sharing string

// The ways to give out GPUs.
const (
	DevicePlugin Sharing = "DevicePlugin"
	Shared       Sharing = "Shared"
	Claims       Sharing = "Claims"
)

// Node is a node with GPUs.
type Node struct {
	Name string `json:"name"`
	// Model is empty where no label tells, as are Domain, the narrowest of the network that the node is in, and Zone.
	Model  string         `json:"model,omitempty"`
	Domain podview.Domain `json:"domain,omitzero"`
	Zone   string         `json:"zone,omitempty"`
	State  NodeState      `json:"state"`
	// Sharing says who gives out the GPUs.
	Sharing Sharing `json:"sharing"`
	// GPUs in the order of their indices where these are known. Else the sum is right, and not which is which.
	GPUs              []GPU `json:"gpus"`
	AllocatedMilliGPU int64 `json:"allocatedMilliGPU"`
	IdleMilliGPU      int64 `json:"idleMilliGPU"`
	StrandedMilliGPU  int64 `json:"strandedMilliGPU"`
	// FreeCPUMilli is in milli-cores, FreeMemoryMiB of the host.
	FreeCPUMilli  int64 `json:"freeCPUMilli"`
	FreeMemoryMiB int64 `json:"freeMemoryMiB"`
	// Pods that are not the node's own.
	Pods int `json:"pods"`
	// Use is who has GPUs of the node, the largest part first.
	Use []Use `json:"use"`
	// Priced says that the price is known.
	Priced                  bool               `json:"priced"`
	MicroDollarsPerHour     price.MicroDollars `json:"microDollarsPerHour"`
	IdleMicroDollarsPerHour price.MicroDollars `json:"idleMicroDollarsPerHour"`
}

// Use is what a workload has of a node's GPUs.
type Use struct {
	// Workload is namespace/name of a Job.
	Workload string `json:"workload"`
	MilliGPU int64  `json:"milliGPU"`
}

// Namespace sums up the pods of a namespace.
type Namespace struct {
	Name string `json:"name"`
	// Pods have a node, PendingPods none; both ask for the GPUs given.
	Pods            int   `json:"pods"`
	PendingPods     int   `json:"pendingPods"`
	MilliGPU        int64 `json:"milliGPU"`
	PendingMilliGPU int64 `json:"pendingMilliGPU"`
	// MicroDollarsPerHour is what its pods pay of the nodes with a known price that they are on.
	MicroDollarsPerHour price.MicroDollars `json:"microDollarsPerHour"`
}

// GPUState is what can be said of one GPU at a glance.
type GPUState string

// The states of a GPU. A stranded one is idle, at least in part, and no request of the cluster's mix could use the
// rest.
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
	// UsedMilliGPU is how much of it pods have.
	UsedMilliGPU int `json:"usedMilliGPU"`
}

// Waiting is a pod or a gang that has no node yet.
type Waiting struct {
	// Position in the order of its scheduler, from 1; 0 while scheduling gates hold it back.
	Position  int    `json:"position"`
	Namespace string `json:"namespace"`
	// Name of the pod, or of the gang.
	Name string `json:"name"`
	// Gang says that it is a gang; Pods of it wait; Pod is one of them.
	Gang bool   `json:"gang"`
	Pods int    `json:"pods"`
	Pod  string `json:"pod"`
	// MilliGPU is what all these pods ask for. Slices and claims are not counted.
	MilliGPU  int64  `json:"milliGPU"`
	Priority  int32  `json:"priority"`
	Scheduler string `json:"scheduler"`
	// WaitSeconds is since the oldest of the pods exists.
	WaitSeconds float64 `json:"waitSeconds"`
	// Nominated is the node on which room is being made for it.
	Nominated string `json:"nominated,omitempty"`
	// Reason is what the scheduler has said last, empty before its first attempt.
	Reason string `json:"reason"`
}

// Gang is a group of pods that start together.
type Gang struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// MinMember pods start together; Members exist, Scheduled of them have a node or have succeeded, Running run.
	MinMember int `json:"minMember"`
	Members   int `json:"members"`
	// Groups says what the groups within the gang need, empty if it has none.
	Groups    string `json:"groups,omitempty"`
	Scheduled int    `json:"scheduled"`
	Running   int    `json:"running"`
	// MilliGPU is what the members that exist ask for.
	MilliGPU int64 `json:"milliGPU"`
	// Nodes on which members are.
	Nodes    int   `json:"nodes"`
	Priority int32 `json:"priority"`
	// Phase is that of the PodGroup, empty without one.
	Phase string `json:"phase,omitempty"`
	// Started says that as many members have a node as start together.
	Started bool `json:"started"`
	// WaitSeconds is since when the gang exists, 0 once it has started.
	WaitSeconds float64 `json:"waitSeconds"`
	// Reason is what the gang lacks, as the scheduler has said last.
	Reason string `json:"reason"`
	// Reserved says which nodes are reserved for it and what they lack, or else when it is expected to start, if that
	// is known.
	Reserved string `json:"reserved,omitempty"`
	// Late says which deadline it cannot keep any more; empty if it keeps all.
	Late string `json:"late,omitempty"`
}

// Warning is an event that something is wrong.
type Warning struct {
	Time      time.Time `json:"time"`
	Namespace string    `json:"namespace,omitempty"`
	// Object is kind/name.
	Object  string `json:"object"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Count is how often it has happened.
	Count int32 `json:"count"`
}
