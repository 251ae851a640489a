// Package stranded says which idle GPUs of a node no pod of a cluster could use: the node lacks CPU or memory for each
// of them, has too few GPUs that are free enough, or is not admitted by their selectors, affinities and tolerations.
// The views of a cluster and the replays count by it. It knows nothing of what may come: the scheduler's expected waste
// is in package gpu.
package stranded

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/podview"
)

// Need is what a pod needs of one node.
type Need struct {
	// Milli thousandths of each of Count GPUs.
	Count, Milli int
	// CPUMilli in milli-cores, MemoryBytes of the host.
	CPUMilli, MemoryBytes int64
	// Models that the pod accepts; empty for any.
	Models []string
}

// Room is what a node has left for pods.
type Room struct {
	Node    *v1.Node
	Model   string
	Devices []gpu.Device
	// FreeCPUMilli in milli-cores, FreeMemoryBytes of the host.
	FreeCPUMilli, FreeMemoryBytes int64
}

// Kinds counts the pods that ask for GPUs, those alike as one kind. The zero value has none.
type Kinds struct {
	byKey map[string]*kind
	// ordered are the kinds, the most frequent ones first, nil when pods were counted since.
	ordered []*kind
}

type kind struct {
	Need
	key string
	// pod is one of them. Its selector, affinity and tolerations are those of all.
	pod  *v1.Pod
	pods int
}

// Add counts a pod and returns the key of its kind, empty for a pod that needs no GPU.
func (k *Kinds) Add(pod *v1.Pod, n Need) (key string) {
	if n.Count == 0 {
		return ""
	}
	var required *v1.NodeSelector
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		required = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	key = fmt.Sprintf("%d/%d/%d/%d/%s/%v/%v/%v", n.CPUMilli, n.MemoryBytes, n.Count, n.Milli, strings.Join(n.Models, "|"),
		pod.Spec.NodeSelector, required, pod.Spec.Tolerations)
	if k.byKey == nil {
		k.byKey = map[string]*kind{}
	}
	if k.byKey[key] == nil {
		k.byKey[key] = &kind{Need: n, key: key, pod: pod}
	}
	k.byKey[key].pods++
	k.ordered = nil
	return key
}

// Remove takes a pod back that was counted under the key.
func (k *Kinds) Remove(key string) {
	known := k.byKey[key]
	if known == nil {
		return
	}
	if known.pods--; known.pods == 0 {
		delete(k.byKey, key)
	}
	k.ordered = nil
}

// Usable says of each device whether a pod of some kind could use what is idle of it. While there are no kinds, all
// that is idle is usable.
func (k *Kinds) Usable(r *Room) []bool {
	usable := make([]bool, len(r.Devices))
	left := 0
	for _, d := range r.Devices {
		if idle(&d) > 0 {
			left++
		}
	}
	for _, of := range k.mostFrequent() {
		if left == 0 {
			return usable
		}
		if !of.fits(r) {
			continue
		}
		for i, d := range r.Devices {
			if !usable[i] && idle(&d) > 0 && d.FreeMilli >= of.Milli {
				usable[i] = true
				left--
			}
		}
	}
	for i := range usable {
		usable[i] = usable[i] || len(k.byKey) == 0 && idle(&r.Devices[i]) > 0
	}
	return usable
}

// Milli is how much of the room's idle GPU no pod of any kind could use.
func (k *Kinds) Milli(r *Room) int64 {
	milli := 0
	for i, usable := range k.Usable(r) {
		if !usable {
			milli += idle(&r.Devices[i])
		}
	}
	return int64(milli)
}

// idle is what is idle of a device, in milli-GPU.
func idle(d *gpu.Device) int {
	if d.Unhealthy {
		return 0
	}
	return d.FreeMilli
}

func (k *Kinds) mostFrequent() []*kind {
	if k.ordered == nil {
		k.ordered = slices.SortedFunc(maps.Values(k.byKey), func(x, y *kind) int {
			return cmp.Or(cmp.Compare(y.pods, x.pods), cmp.Compare(x.key, y.key))
		})
	}
	return k.ordered
}

func (k *kind) fits(r *Room) bool {
	if k.CPUMilli > r.FreeCPUMilli || k.MemoryBytes > r.FreeMemoryBytes || len(k.Models) > 0 &&
		!slices.Contains(k.Models, r.Model) {
		return false
	}
	fitting := 0
	for _, d := range r.Devices {
		if idle(&d) >= k.Milli {
			fitting++
		}
	}
	return fitting >= k.Count && podview.Admits(r.Node, k.pod)
}
