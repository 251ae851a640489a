// Package history is the format of a history: a cluster, the steps that happen to it, and the objects of the API that
// they stand for. It makes histories from seeds, leaves out what a fault does not need, and reads and writes files.
//
// The command that lives through histories calls it. It knows no scheduler, no API and no clock, and the same seed
// gives the same history.
package history

import (
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// A History is a cluster and what happens to it.
type History struct {
	// Seed decides the weather, and what the generator made.
	Seed uint64 `json:"seed"`
	// LostPercent of the scheduler's writes are lost, or their answers.
	LostPercent int `json:"lostPercent,omitempty"`
	// MaxDelayMillis is how late a write, its answer or an event may be.
	MaxDelayMillis int `json:"maxDelayMillis,omitempty"`
	// MostEvictions is how many pods the scheduler may evict, if that is known.
	MostEvictions *int   `json:"mostEvictions,omitempty"`
	Nodes         []Node `json:"nodes"`
	Steps         []Step `json:"steps"`
}

// Node is what a history says of a node.
type Node struct {
	Name  string `json:"name"`
	Model string `json:"model,omitempty"`
	GPUs  int    `json:"gpus,omitempty"`
	// Mode is whole, shared or dra: who hands out its GPUs.
	Mode   string `json:"mode,omitempty"`
	CPUs   int64  `json:"cpus"`
	MemGiB int64  `json:"memGiB"`
	Zone   string `json:"zone"`
	// Tainted nodes come with the taint that "untaint node" takes away, as those do that are not ready at first.
	Tainted bool `json:"tainted,omitempty"`
	// Volumes is how many local volumes it has.
	Volumes int `json:"volumes,omitempty"`
	// Price in dollars an hour, as an annotation says it.
	Price string `json:"price,omitempty"`
}

// Pod is what a history says of a pod.
type Pod struct {
	Name string `json:"name"`
	Gang string `json:"gang,omitempty"`
	Role string `json:"role,omitempty"`
	// Job is set if its gang is that of a Job, which makes it, and not that of a PodGroup.
	Job bool `json:"job,omitempty"`
	// Profile of the scheduler that places it, by default berth-scheduler. All that are shipped have the same filters.
	Profile string `json:"profile,omitempty"`
	// MinAvailable is the minimum of the gang where labels of its pods say it, and there is no PodGroup.
	MinAvailable int `json:"minAvailable,omitempty"`
	// Half is its group within a gang of halves.
	Half     string `json:"half,omitempty"`
	MilliCPU int64  `json:"milliCPU"`
	MemGiB   int64  `json:"memGiB"`
	GPUs     int    `json:"gpus,omitempty"`
	MilliGPU int    `json:"milliGPU,omitempty"`
	// ClaimedGPUs are asked for by a ResourceClaim.
	ClaimedGPUs int64    `json:"claimedGPUs,omitempty"`
	Models      []string `json:"models,omitempty"`
	Priority    int32    `json:"priority,omitempty"`
	Zone        string   `json:"zone,omitempty"`
	// VolumeZone is where its volume is.
	VolumeZone string `json:"volumeZone,omitempty"`
	// LocalVolume is set if it has a volume of its node, which is bound when the pod is.
	LocalVolume bool `json:"localVolume,omitempty"`
	Tolerates   bool `json:"tolerates,omitempty"`
	Gated       bool `json:"gated,omitempty"`
	// Guarded pods are covered by a budget that allows no disruption.
	Guarded bool `json:"guarded,omitempty"`
	// Backfill lets it run in what is kept for a gang, until that gang can start.
	Backfill bool `json:"backfill,omitempty"`
	// Port is set if it needs the one port of its node that such pods share, Apart if no two such pods may be on a node.
	Port  bool `json:"port,omitempty"`
	Apart bool `json:"apart,omitempty"`
	// Near members of a gang want to be in one zone, by an affinity of theirs.
	Near bool `json:"near,omitempty"`
	// Spread is how it is spread with others, if it is.
	Spread *Spread `json:"spread,omitempty"`
	// Returns: when the scheduler evicts the pod, another one of the same kind is made, as a Job does; of the same name
	// if it KeepsName, as a StatefulSet does.
	Returns   bool `json:"returns,omitempty"`
	KeepsName bool `json:"keepsName,omitempty"`
	// EndsSeconds is its grace period, which it uses up, and LateSeconds how much longer something holds it.
	EndsSeconds int64 `json:"endsSeconds,omitempty"`
	LateSeconds int64 `json:"lateSeconds,omitempty"`
	// Times is how often the pod was made again. Its claim has another name each time, as those that are made from a
	// template have.
	Times int `json:"-"`
}

// Gang is what a history says of a PodGroup, or of a Job whose pods are a gang.
type Gang struct {
	Name           string `json:"name"`
	MinMember      int    `json:"minMember"`
	MinByRole      string `json:"minByRole,omitempty"`
	TimeoutSeconds int64  `json:"timeoutSeconds,omitempty"`
	// Halves has the gang be two groups that are each in one zone and have half of the minimum.
	Halves bool `json:"halves,omitempty"`
	// OneZone requires all members to be in the same zone.
	OneZone bool `json:"oneZone,omitempty"`
	// Job is set if it is a Job; MinMember is then its parallelism.
	Job bool `json:"job,omitempty"`
}

// What a step does. Those that name an object that is not there do nothing, so that steps can be left out.
const (
	CreatePod   = "create pod"
	CreateGang  = "create gang"
	DeletePod   = "delete pod"
	KillPod     = "kill pod" // as deletePod, but one that Returns comes back
	FinishPod   = "finish pod"
	FailPod     = "fail pod" // one that Returns gets another in its place
	MoveToGang  = "move pod" // Value is its new gang, or empty
	UngatePod   = "ungate pod"
	EditPod     = "edit pod"    // Value is a label that the pod gets
	DeleteGang  = "delete gang" // the pods of a Job go later
	ScaleGang   = "scale gang"  // Count is the new minMember
	AddNode     = "add node"
	RemoveNode  = "remove node" // and its pods
	CordonNode  = "cordon node"
	OpenNode    = "uncordon node"
	TaintNode   = "taint node"
	UntaintNode = "untaint node"
	ResizeNode  = "resize node" // Count is the number of GPUs that are left to allocate
	MoveNode    = "move node"   // Value is the new zone
	Restart     = "restart the scheduler"
)

// Step happens After the step before it.
type Step struct {
	After metav1.Duration `json:"after"`
	Do    string          `json:"do"`
	Name  string          `json:"name,omitempty"`
	Pod   *Pod            `json:"pod,omitempty"`
	Gang  *Gang           `json:"gang,omitempty"`
	Node  *Node           `json:"node,omitempty"`
	Count int             `json:"count,omitempty"`
	Value string          `json:"value,omitempty"`
	// Down is how long no scheduler runs.
	Down metav1.Duration `json:"down,omitzero"`
}

// String says what the step does, for a report.
func (s Step) String() string {
	name := s.Name
	switch {
	case s.Pod != nil:
		name = s.Pod.Name
	case s.Gang != nil:
		name = s.Gang.Name
	case s.Node != nil:
		name = s.Node.Name
	}
	return fmt.Sprintf("%s %s", s.Do, name)
}

// Duration is the time from the first step to the last.
func (h *History) Duration() time.Duration {
	var total time.Duration
	for _, s := range h.Steps {
		total += s.After.Duration + s.Down.Duration
	}
	return total
}

// Read reads a history from a file.
func Read(file string) (*History, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading a history: %w", err)
	}
	var h History
	if err := yaml.UnmarshalStrict(content, &h); err != nil {
		return nil, fmt.Errorf("reading the history in %s: %w", file, err)
	}
	return &h, nil
}

// Write writes a history to a file, with the fault that it shows at its head if there is one.
func Write(h *History, fault error, file string) error {
	content, err := yaml.Marshal(h)
	if err != nil {
		return fmt.Errorf("writing a history: %w", err)
	}
	content = append([]byte(comment(fault)), content...)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return fmt.Errorf("writing a history: %w", err)
	}
	return nil
}

// comment is the fault as the head of a file.
func comment(fault error) string {
	if fault == nil {
		return ""
	}
	return "# " + strings.ReplaceAll(fault.Error(), "\n", "\n# ") + "\n"
}
