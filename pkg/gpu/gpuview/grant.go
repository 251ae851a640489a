package gpuview

import (
	"encoding/json"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
)

// Assignment is which devices a pod has, on which node, and how much of each.
type Assignment struct {
	Node    string
	Devices []int
	Share   gpu.Share
	// UUIDs are those of the devices, if the node lists them. Indices may change when the list is written again.
	UUIDs []string
	// WholeMiB is the memory of each device that the pod gets whole; nil if all have the memory of the share. It is not
	// recorded.
	WholeMiB []int
	// Registered reports that HAMi's device plugin registered the devices. It is not recorded.
	Registered bool
}

// Assign is the assignment of devices of the node.
func (g *Node) Assign(devices []int, share gpu.Share) Assignment {
	a := Assignment{
		Node: g.Node.Name, Devices: devices, Share: share, Registered: g.empty.Agent == gpu.AgentRegistered,
	}
	if len(g.uuids) > 0 {
		for _, d := range devices {
			a.UUIDs = append(a.UUIDs, g.uuids[d])
		}
	}
	if share.Milli >= gpu.WholeMilli && share.MemMiB >= g.empty.MemMiB {
		own := make([]int, len(devices))
		for at, i := range devices {
			own[at] = g.empty.MemoryOf(i)
		}
		if slices.ContainsFunc(own, func(memMiB int) bool { return memMiB != share.MemMiB }) {
			a.WholeMiB = own
		}
	}
	return a
}

// DevicesOn are the indices of the devices as the node lists them now. Devices that it no longer lists are left out:
// other devices may have their indices by now.
func (a *Assignment) DevicesOn(node *Node) []int {
	if len(a.UUIDs) == 0 || len(node.uuids) == 0 {
		return a.Devices
	}
	devices := make([]int, 0, len(a.UUIDs))
	for _, uuid := range a.UUIDs {
		if i := slices.Index(node.uuids, uuid); i >= 0 {
			devices = append(devices, i)
		}
	}
	return devices
}

// AssignmentOf finds the devices that this process has assigned to a pod. For pods where it returns false, the grant or
// the annotations count.
type AssignmentOf func(uid types.UID) (Assignment, bool)

// GPUsAssigned is the condition of a pod that records its devices; its message is a grant as JSON. Users who may create
// and edit pods cannot write conditions: the API server drops the status of a pod that is created or updated, and the
// role "edit" has no right to pods/status.
const GPUsAssigned v1.PodConditionType = "berth.dev/GPUsAssigned"

// grant records the devices of a pod. Pod and node tie it to one binding: a copy on another pod, or one that is left
// from a binding that failed, does not count.
type grant struct {
	Pod     types.UID `json:"pod"`
	Node    string    `json:"node"`
	Devices []int     `json:"devices"`
	UUIDs   []string  `json:"uuids,omitempty"`
	Milli   int       `json:"milli"`
	MemMiB  int       `json:"memMiB,omitempty"`
}

// grantValue is the only writer of grants, parseGrant the only reader.
func grantValue(pod *v1.Pod, a Assignment) (string, error) {
	value, err := json.Marshal(grant{
		Pod: pod.UID, Node: a.Node, Devices: a.Devices, UUIDs: a.UUIDs, Milli: a.Share.Milli, MemMiB: a.Share.MemMiB,
	})
	return string(value), err
}

// assignedCondition finds the condition that records a grant; nil for none.
func assignedCondition(pod *v1.Pod) *v1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == GPUsAssigned && c.Status == v1.ConditionTrue {
			return c
		}
	}
	return nil
}

// Granted reads the devices that a scheduler of this project gave to a bound pod. It returns false when they are not
// recorded in the pod's status, not for this pod on its node, or not readable.
func Granted(pod *v1.Pod) (Assignment, bool) {
	c := assignedCondition(pod)
	if c == nil {
		return Assignment{}, false
	}
	return grantTo(pod, c.Message)
}

// grantTo reads a grant to this pod on its node.
func grantTo(pod *v1.Pod, value string) (Assignment, bool) {
	g, ok := parseGrant(value)
	if !ok || g.Pod != pod.UID || g.Node != pod.Spec.NodeName {
		return Assignment{}, false
	}
	share := gpu.Share{Milli: g.Milli, MemMiB: g.MemMiB}
	return Assignment{Node: g.Node, Devices: g.Devices, UUIDs: g.UUIDs, Share: share}, true
}

// GrantDisputed reports whether the annotations of a pod hold other devices than its grant, so that they were edited.
func GrantDisputed(pod *v1.Pod, a Assignment) bool {
	recorded := assignedCondition(pod)
	if value, ok := pod.Annotations[wellknown.GPUAssignedKey]; !ok || recorded == nil || value != recorded.Message {
		return true
	}
	for _, d := range dialects {
		if !d.answered(pod) {
			continue
		}
		used := d.decode(pod, &Node{uuids: a.UUIDs}, len(a.Devices), a.Share)
		devices := a.Devices
		if d == &hami {
			devices = make([]int, len(a.UUIDs)) // the node below has the list a.UUIDs, in which they are 0, 1, …
			for i := range devices {
				devices[i] = i
			}
		}
		if len(used) == 0 || slices.ContainsFunc(used,
			func(u deviceShare) bool { return !slices.Contains(devices, u.device) }) {
			return true
		}
	}
	return false
}

// parseGrant ignores unknown fields: a later release may have written them.
func parseGrant(value string) (grant, bool) {
	var g grant
	if value == "" || json.Unmarshal([]byte(value), &g) != nil {
		return grant{}, false
	}
	if len(g.Devices) == 0 || g.Node == "" || g.Milli < 1 || g.Milli > gpu.WholeMilli || g.MemMiB < 0 || g.MemMiB > 1<<30 {
		return grant{}, false
	}
	if len(g.UUIDs) > 0 && len(g.UUIDs) != len(g.Devices) {
		return grant{}, false
	}
	seen := map[int]bool{}
	for _, d := range g.Devices {
		if d < 0 || d >= MaxGPUs || seen[d] {
			return grant{}, false
		}
		seen[d] = true
	}
	return g, true
}
