// Package replayed has the result and the progress of a replay. It is separate so that packages that show results do
// not link the scheduler.
package replayed

// Result is the outcome of one replay. The same input, configuration and seed give the same encoded result, except for
// Timing. In ArrivalOrder that is true of Placements, but figures in seconds can differ.
type Result struct {
	Input         string `json:"input"`
	Configuration string `json:"configuration"`
	Profile       string `json:"profile"`
	Mode          Mode   `json:"mode"`
	Seed          uint64 `json:"seed"`

	// Notes describe how the replay deviates from the configuration and the input.
	Notes []string `json:"notes"`

	Nodes         int   `json:"nodes"`
	CapacityMilli int64 `json:"capacityMilliGPU"`
	NodesUnpriced int   `json:"nodesWithoutPrice"`
	Jobs          int   `json:"jobs"`
	Pods          int   `json:"pods"`
	Placed        int   `json:"podsPlaced"`
	Pending       int   `json:"podsPending"`
	// Incomplete are pods with a node whose gang is not complete: they are neither placed nor pending.
	Incomplete      int      `json:"podsOfIncompleteGangs"`
	Refused8        Share    `json:"refusedEightGPUPods"`
	PendingByReason []Reason `json:"pendingByReason"`

	// WaitByReason has the waits of pods that were placed later. A pod counts for each of its reasons.
	WaitByReason []Wait `json:"waitByReason"`

	// Basis says whether AllocatedPercent and the figures up to MicroDollarsPerHour are means, and Window over which time.
	Basis  Basis   `json:"basis"`
	Window *Window `json:"window,omitempty"`
	// AllocatedPercent is the part of the cluster's GPUs that is requested by pods that can run. A share counts as
	// requested, even if it gets more; members of an incomplete gang do not count.
	AllocatedPercent float64 `json:"allocatedPercent"`
	AllocatedMilli   int64   `json:"allocatedMilliGPU"`
	IdleMilli        int64   `json:"idleMilliGPU"`
	StrandedMilli    int64   `json:"strandedMilliGPU"`
	// HeldMilli, a part of StrandedMilli, is allocated to pods beyond their requests or to incomplete gangs;
	// IncompleteMilli is the part of the latter.
	HeldMilli           int64   `json:"heldMilliGPU"`
	IncompleteMilli     int64   `json:"incompleteGangMilliGPU"`
	SpotMilli           int64   `json:"spotMilliGPU"`
	NodesInUse          float64 `json:"nodesInUse"`
	MicroDollarsPerHour int64   `json:"microDollarsPerHour"`
	// PricesMicroDollars is what all nodes with a price cost an hour, in use or not.
	PricesMicroDollars int64 `json:"allNodesMicroDollarsPerHour"`
	// MicroDollars is the whole bill in virtual time, until the last progress of the work.
	MicroDollars int64 `json:"microDollars,omitempty"`

	// SharePods and Gangs count those that were offered. SharesGPUs and KnowsGangs say whether the profile supports them.
	SharePods    int  `json:"sharePods"`
	Gangs        int  `json:"gangs"`
	SharesGPUs   bool `json:"sharesGPUs"`
	KnowsGangs   bool `json:"knowsGangs"`
	GangsStarted int  `json:"gangsStarted"`

	GangWait Waits `json:"gangWaitSeconds"`
	PodWait  Waits `json:"podWaitSeconds"`
	// ToldStartError is the difference between the first estimated start of gangs and their actual start.
	ToldStartError Waits `json:"toldStartErrorSeconds"`
	JobCompletion  Waits `json:"jobCompletionSeconds"`
	JobsCompleted  int   `json:"jobsCompleted"`
	Preemptions    int   `json:"preemptions"`
	// LostGPUHours is the work of preempted pods since their last checkpoint.
	LostGPUHours   float64 `json:"lostGPUHours"`
	VirtualSeconds float64 `json:"virtualSeconds"`

	// Samples follow the replay; at most a few hundred.
	Samples []Sample `json:"samples"`
	// Placements are the last nodes of the pods, by pod, empty for one that never had a node.
	Placements map[string]string `json:"placements,omitempty"`

	// Starts are the seconds from the start until all pods of a job had a node for the first time, by the job's name.
	Starts map[string]float64 `json:"-"`

	// Timing is measured, not simulated: it differs from run to run.
	Timing Timing `json:"-"`
}

// Mode is how a trace is offered.
type Mode string

const (
	// ArrivalOrder offers the jobs one after another in an order shuffled by the seed, tuned to 1.3 times the GPUs of the
	// cluster, and lets nothing end: the method by which the published figures of the openb traces were taken.
	ArrivalOrder Mode = "order"
	// VirtualTime offers each job at its arrival and ends it after its duration, on a virtual clock.
	VirtualTime Mode = "time"
)

// Basis says what the figures of a Result describe.
type Basis string

const (
	// EndState is the state at the end.
	EndState Basis = "end-state"
	// FullLoad is the state at the end, but the allocation is the mean while the arrived demand rounds to 100% of the
	// GPUs.
	FullLoad Basis = "full-load"
	// TimeMean is the mean over the time of Window.
	TimeMean Basis = "time-mean"
)

// Window is the time over which means are taken, in seconds since the start.
type Window struct {
	From  float64 `json:"fromSeconds"`
	To    float64 `json:"toSeconds"`
	Until Until   `json:"until"`
}

// Until says what ends a Window.
type Until string

const (
	// LastArrival of a job: after it the cluster only empties.
	LastArrival Until = "last-arrival"
	// WorkDone is the end of the work, where all jobs arrive in less time than the median one runs.
	WorkDone Until = "work-done"
	// Horizon is the end of the replay that its options set.
	Horizon Until = "horizon"
)

// Timing is the real time of a replay.
type Timing struct {
	// Wall is the real time of the replay and CPU the processor time of its scheduling cycles, in seconds.
	Wall float64 `json:"wallSeconds"`
	CPU  float64 `json:"schedulerCPUSeconds"`
	// Cycles is the number of scheduling cycles. Attempts on pods that keep failing may differ by a few from run to run,
	// because the queue wakes them in the order of a map.
	Cycles int `json:"schedulingCycles"`
	// PodsPerSecond is the number of offered pods in a real second.
	PodsPerSecond float64 `json:"podsPerSecond"`
}

// Share is a part of a whole.
type Share struct {
	Part int `json:"part"`
	Of   int `json:"of"`
}

// Reason is why pods are pending.
type Reason struct {
	Reason string `json:"reason"`
	Pods   int    `json:"pods"`
}

// Wait is the sum of the waits of pods with a reason.
type Wait struct {
	Reason  string  `json:"reason"`
	Pods    int     `json:"pods"`
	Seconds float64 `json:"seconds"`
}

// Waits summarises durations in seconds.
type Waits struct {
	Count int     `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	Max   float64 `json:"max"`
}

// Sample is one moment of a replay.
type Sample struct {
	// Seconds since the start, in virtual time.
	Seconds float64 `json:"seconds"`
	// ArrivedPercent is the demand that has arrived, of the cluster's GPUs.
	ArrivedPercent      float64 `json:"arrivedPercent"`
	AllocatedPercent    float64 `json:"allocatedPercent"`
	StrandedPercent     float64 `json:"strandedPercent"`
	MicroDollarsPerHour int64   `json:"microDollarsPerHour"`
	NodesInUse          int     `json:"nodesInUse"`
	Pending             int     `json:"pending"`
}
