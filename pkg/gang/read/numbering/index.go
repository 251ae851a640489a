package numbering

import (
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang/ranks"
	"berth.dev/berth/pkg/podview"
)

// numbering is how a controller numbers the pods of a workload: all keys are those of labels or annotations.
type numbering struct {
	// number counts the pods of a block from 0, and block the consecutive parts of a workload.
	number, block string
	// set names what is numbered separately; without a key it is the pod's controller.
	set string
	// whole is set if the numbers count the pods of the whole workload.
	whole bool
}

// numberings are in order of precedence: the pods of a JobSet are those of Jobs as well, and the leaders of a
// LeaderWorkerSet those of a StatefulSet.
var numberings = []numbering{
	{number: "leaderworkerset.sigs.k8s.io/worker-index", block: "leaderworkerset.sigs.k8s.io/group-index", whole: true},
	{number: completionIndexKey, block: "jobset.sigs.k8s.io/job-global-index", whole: true},
	{number: completionIndexKey, block: "jobset.sigs.k8s.io/job-index", set: "jobset.sigs.k8s.io/replicatedjob-name"},
	{number: completionIndexKey},
	{number: "training.kubeflow.org/replica-index", set: "training.kubeflow.org/replica-type"},
	{number: "volcano.sh/task-index", set: "volcano.sh/task-spec"},
	{number: "grove.io/podclique-pod-index", set: "grove.io/podclique"},
	{number: "kueue.x-k8s.io/pod-group-pod-index", whole: true},
	{number: "ray.io/replica-host-index", block: "ray.io/worker-group-replica-index", set: "ray.io/group"},
	{number: "apps.kubernetes.io/pod-index"},
}

const completionIndexKey = "batch.kubernetes.io/job-completion-index"

// MaxMembers is the largest minimum of a gang. Members have smaller numbers.
const MaxMembers = 100000

// firstSets are the parts of workloads to which frameworks give the first ranks.
var firstSets = []string{"master", "Master", "chief", "Chief", "launcher", "Launcher", "leader", "head"}

// IsFirst reports whether pods of the part of a workload have the first ranks.
func IsFirst(set string) bool { return slices.Contains(firstSets, set) }

// Keys are the labels and annotations that number pods.
func Keys() (keys []string) {
	for _, n := range numberings {
		for _, key := range []string{n.number, n.block, n.set} {
			if key != "" {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// IndexOf returns the number that the pod's controller gave it, false if there is none or it cannot be read.
func IndexOf(pod *v1.Pod) (ranks.Index, bool) {
	for i := range numberings {
		n := &numberings[i]
		number, found := numberAt(pod, n.number)
		if !found {
			continue
		}
		index := ranks.Index{Number: number}
		if n.block != "" {
			if index.Block, found = numberAt(pod, n.block); !found {
				continue
			}
		}
		switch {
		case n.set != "":
			index.Set = podview.LabelOrAnnotation(pod, n.set)
			index.First = IsFirst(index.Set)
		case n.whole:
		default:
			if by := podview.ControllerOf(pod); by != nil {
				index.Set = by.Name
			}
		}
		return index, true
	}
	return ranks.Index{}, false
}

// numberAt reads a number below MaxMembers.
func numberAt(pod *v1.Pod, key string) (int, bool) {
	n, err := strconv.Atoi(podview.LabelOrAnnotation(pod, key))
	return n, err == nil && n >= 0 && n < MaxMembers
}
