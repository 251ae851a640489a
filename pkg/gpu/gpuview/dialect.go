package gpuview

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
)

// Dialect is the sharing project whose keys a pod uses to ask for a part of a GPU and to learn its devices.
type Dialect uint8

const (
	// DialectNone is a pod that asks for no part of a GPU.
	DialectNone Dialect = iota
	// DialectOpenb is open-gpu-share, which the openb traces follow.
	DialectOpenb
	// DialectKAI is the KAI scheduler.
	DialectKAI
	// DialectHAMi is HAMi.
	DialectHAMi
)

// dialect is how pods of one project ask for a part of a GPU and learn their devices.
type dialect struct {
	// asks are the annotations and resources the extended resources by which a pod asks.
	asks, resources []string
	// refused are annotations that narrow the choice of GPUs for that project's own scheduler.
	refused []string
	// answers are annotations that hold the devices of a pod; passing are further ones that matter only until it runs.
	answers, passing []string
	// onNode are annotations of a node.
	onNode []string
	// read reads the request, if the pod makes one in this dialect.
	read func(k *Keys, pod *v1.Pod, ask gpuAsk, r *Request) error
	// encode returns the annotations for an assignment.
	encode func(pod *v1.Pod, r *Request, a Assignment, now time.Time) (map[string]string, error)
	// decode reads the devices from the annotations and what the pod has of each, which is the share unless the
	// annotations say more; nil when they cannot be read or, with a count above 0, name another number of devices.
	decode func(pod *v1.Pod, node *Node, count int, share gpu.Share) []deviceShare
}

// deviceShare is what a pod has of one device.
type deviceShare struct {
	device int
	share  gpu.Share
}

// dialects by Dialect. All lists of their keys are derived from this table.
var dialects = [...]*dialect{DialectNone: {}, DialectOpenb: &openb, DialectKAI: &kai, DialectHAMi: &hami}

// readingOrder is the order in which requests are read: resources come before annotations.
var readingOrder = [...]*dialect{&hami, &openb, &kai}

// dialectKeys collects keys of all dialects.
func dialectKeys(of func(*dialect) []string) []string {
	var keys []string
	for _, d := range dialects {
		keys = append(keys, of(d)...)
	}
	return keys
}

var (
	// askingAnnotations are those by which a pod asks for GPUs or for a part of one, or restricts the choice.
	askingAnnotations = append(dialectKeys(func(d *dialect) []string { return d.asks }), ownPodKeys...)
	// answerKeys are the annotations that hold the devices or the node of a pod.
	answerKeys = append(dialectKeys(func(d *dialect) []string { return slices.Concat(d.answers, d.passing) }),
		wellknown.GPUAssignedKey)
	// claimingAnnotations are those by which a pod may claim to have GPUs.
	claimingAnnotations = slices.Concat(askingAnnotations, answerKeys)
	// Annotations are all annotations of pods and nodes by which GPUs are asked for, described and assigned.
	Annotations = slices.Concat(
		askingAnnotations, []string{wellknown.GPULinksKey, wellknown.GPUAssignedKey},
		dialectKeys(func(d *dialect) []string { return slices.Concat(d.refused, d.answers, d.onNode) }),
	)
	// grantKeys are the annotations behind the devices of a pod that only schedulers and users write.
	grantKeys = slices.Concat(askingAnnotations, dialectKeys(func(d *dialect) []string { return d.answers }),
		[]string{wellknown.GPUAssignedKey})
	// shareResources are the extended resources by which a part of a GPU is asked for.
	shareResources = dialectKeys(func(d *dialect) []string { return d.resources })
)

// AnswerKeys returns the annotations in which schedulers and device plugins write the devices, the node or the address
// of a pod, sorted.
func AnswerKeys() []string {
	keys := append([]string{wellknown.IPAddressKey}, answerKeys...)
	slices.Sort(keys)
	return keys
}

// AskingKeys returns the annotations by which a pod asks for GPUs or restricts the choice of them, sorted.
func AskingKeys() []string { return slices.Sorted(slices.Values(askingAnnotations)) }

// answerDialect is the dialect in which the devices of a pod are written: that of the agent that serves it, else that
// in which it asked, else openb's.
func (r *Request) answerDialect(a Assignment) Dialect {
	switch {
	case r.ServedByHAMi(a):
		return DialectHAMi
	case r.Dialect == DialectKAI:
		return DialectKAI
	default:
		return DialectOpenb
	}
}

// Answers are the annotations by which a pod and the agents of its node learn its devices, with the record that goes
// into the condition GPUsAssigned. An annotation with the value nil is to be removed: an earlier attempt or another
// scheduler may have left it, in any dialect.
func Answers(pod *v1.Pod, r *Request, a Assignment, now time.Time) (annotations map[string]any, record string,
	err error) {
	encoded, err := dialects[r.answerDialect(a)].encode(pod, r, a, now)
	if err != nil {
		return nil, "", err
	}
	if record, err = grantValue(pod, a); err != nil {
		return nil, "", fmt.Errorf("encoding the grant: %w", err)
	}
	annotations = make(map[string]any, len(answerKeys))
	for _, key := range answerKeys {
		annotations[key] = nil
	}
	for key, value := range encoded {
		annotations[key] = value
	}
	annotations[wellknown.GPUAssignedKey] = record
	return annotations, record, nil
}

// StaleAnswers are the annotations to remove from a pod that goes to a node where the kubelet chooses the devices, and
// whether the pod has a record of devices as well.
func StaleAnswers(pod *v1.Pod) (annotations map[string]any, recorded bool) {
	annotations = map[string]any{}
	for _, key := range answerKeys {
		if _, ok := pod.Annotations[key]; ok {
			annotations[key] = nil
		}
	}
	return annotations, assignedCondition(pod) != nil
}

// Unplaced returns a copy of the pod as before it was scheduled: without node, devices and status.
func Unplaced(pod *v1.Pod) *v1.Pod {
	out := pod.DeepCopy()
	out.Spec.NodeName = ""
	out.Status = v1.PodStatus{Phase: v1.PodPending, ResourceClaimStatuses: out.Status.ResourceClaimStatuses}
	for _, key := range answerKeys {
		delete(out.Annotations, key)
	}
	return out
}

// GrantEdited reports whether an update changes the annotations by which a pod asked for GPUs or those that hold its
// devices. What an agent writes in the course of its work is no edit.
func GrantEdited(before, after *v1.Pod) bool {
	return slices.ContainsFunc(grantKeys, func(key string) bool {
		was, had := before.Annotations[key]
		is, has := after.Annotations[key]
		return had != has || was != is
	})
}

// AssignedDevices are the device indices of a bound pod: those of its grant, else those in its annotations, in any
// dialect; nil when there are none or they cannot be read. Without a grant, they are what the pod uses, although the
// scheduler may count others for it.
func AssignedDevices(pod *v1.Pod) []int {
	if a, ok := Granted(pod); ok {
		return a.Devices
	}
	var devices []int
	for _, used := range decodeAnswer(pod, &Node{}, 0, gpu.Share{}) {
		devices = append(devices, used.device)
	}
	return devices
}

// decodeAnswer reads the devices from the annotations of the first dialect that has some.
func decodeAnswer(pod *v1.Pod, node *Node, count int, share gpu.Share) []deviceShare {
	for _, d := range dialects {
		if d.answered(pod) {
			return d.decode(pod, node, count, share)
		}
	}
	return nil
}

// answered reports whether the pod has annotations of the dialect that hold devices.
func (d *dialect) answered(pod *v1.Pod) bool {
	return slices.ContainsFunc(d.answers, func(key string) bool { _, ok := pod.Annotations[key]; return ok })
}

// refuseWhole returns an error if a share is asked for beside whole GPUs or in two dialects.
func refuseWhole(key, value string, ask gpuAsk, r *Request) error {
	var other string
	switch {
	case ask.count > 0:
		other = fmt.Sprintf("resource %s: %d", ask.resource, ask.count)
	case len(r.Slices) > 0:
		other = "resource " + r.Slices[0].Resource
	case r.Dialect == DialectOpenb:
		other = "annotation " + OpenbMilliKey
	default:
		return nil
	}
	return badAnnotation(key, value, "allowed together with "+other)
}

func joinIndices(devices []int, separator string) string {
	parts := make([]string, len(devices))
	for i, d := range devices {
		parts[i] = strconv.Itoa(d)
	}
	return strings.Join(parts, separator)
}

// indicesUnder returns a decode function for an annotation with a list of distinct indices. The pod has the share of
// each.
func indicesUnder(key, separator string) func(*v1.Pod, *Node, int, gpu.Share) []deviceShare {
	return func(pod *v1.Pod, _ *Node, count int, share gpu.Share) []deviceShare {
		var devices []deviceShare
		seen := map[int]bool{}
		for field := range strings.SplitSeq(pod.Annotations[key], separator) {
			i, err := strconv.Atoi(field)
			if err != nil || i < 0 || i >= MaxGPUs || seen[i] {
				return nil
			}
			seen[i] = true
			devices = append(devices, deviceShare{i, share})
		}
		if count > 0 && len(devices) != count {
			return nil
		}
		return devices
	}
}
