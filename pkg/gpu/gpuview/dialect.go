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

// Dialect is the sharing project in whose terms a pod asks for a part of a GPU, and expects the answer.
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

// dialect is how pods of one project ask for a part of a GPU and how they are told which.
type dialect struct {
	// asks are annotations, resources extended resources by which a pod asks.
	asks, resources []string
	// refused are annotations by which a pod narrows the choice for that project's own scheduler.
	refused []string
	// answers are annotations by which a pod is told; passing are further ones that mean something only until it runs.
	answers, passing []string
	// onNode are annotations of a node.
	onNode []string
	// read reads the request, if the pod makes one in this dialect.
	read func(k *Keys, pod *v1.Pod, ask gpuAsk, r *Request) error
	// tell words the answer.
	tell func(pod *v1.Pod, r *Request, a Assignment, now time.Time) (map[string]string, error)
	// told reads the answer: the devices and what the pod holds of each, which is the share unless the answer says more;
	// nil when it cannot be read or, with a count above 0, names another number of devices.
	told func(pod *v1.Pod, node *Node, count int, share gpu.Share) []deviceShare
}

// deviceShare is what a pod holds of one device.
type deviceShare struct {
	device int
	share  gpu.Share
}

// dialects by Dialect. What else needs a list of their keys derives it from this table.
var dialects = [...]*dialect{DialectNone: {}, DialectOpenb: &openb, DialectKAI: &kai, DialectHAMi: &hami}

// readingOrder is that in which requests are read: what a pod asks by resources comes before annotations.
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
	// askingAnnotations are those by which a pod asks for GPUs, for a part of one, or for some GPUs rather than others.
	askingAnnotations = append(dialectKeys(func(d *dialect) []string { return d.asks }), ownPodKeys...)
	// answerKeys are the annotations that tell a pod its devices or its node.
	answerKeys = append(dialectKeys(func(d *dialect) []string { return slices.Concat(d.answers, d.passing) }),
		wellknown.GPUAssignedKey)
	// claimingAnnotations are those by which a pod may claim GPUs.
	claimingAnnotations = slices.Concat(askingAnnotations, answerKeys)
	// Annotations are all annotations of pods and nodes by which GPUs are asked for, described and assigned.
	Annotations = slices.Concat(
		askingAnnotations, []string{wellknown.GPULinksKey, wellknown.GPUAssignedKey},
		dialectKeys(func(d *dialect) []string { return slices.Concat(d.refused, d.answers, d.onNode) }),
	)
	// grantKeys are those annotations of a pod on which its devices rest that only schedulers and users write.
	grantKeys = slices.Concat(askingAnnotations, dialectKeys(func(d *dialect) []string { return d.answers }),
		[]string{wellknown.GPUAssignedKey})
	// shareResources are the extended resources by which a part of a GPU is asked for.
	shareResources = dialectKeys(func(d *dialect) []string { return d.resources })
)

// AnswerKeys returns the annotations by which schedulers and device plugins tell a pod its devices, its node or its
// address, sorted.
func AnswerKeys() []string {
	keys := append([]string{wellknown.IPAddressKey}, answerKeys...)
	slices.Sort(keys)
	return keys
}

// AskingKeys returns the annotations by which a pod asks for GPUs or narrows the choice of them, sorted.
func AskingKeys() []string { return slices.Sorted(slices.Values(askingAnnotations)) }

// answerDialect is the dialect in which a pod is told its devices: that of the agent that serves it, else that in which
// it asked, else openb's.
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

// Answers are the annotations by which a pod and the agents of its node learn which devices it holds, with the record
// of it that goes into the condition GPUsAssigned. An annotation without a value is one to remove: what an earlier
// attempt, or another scheduler, left in any dialect.
func Answers(pod *v1.Pod, r *Request, a Assignment, now time.Time) (annotations map[string]any, record string,
	err error) {
	told, err := dialects[r.answerDialect(a)].tell(pod, r, a, now)
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
	for key, value := range told {
		annotations[key] = value
	}
	annotations[wellknown.GPUAssignedKey] = record
	return annotations, record, nil
}

// StaleAnswers are the annotations to remove from a pod that goes to a node where the kubelet chooses, and whether it
// has a record of devices as well.
func StaleAnswers(pod *v1.Pod) (annotations map[string]any, recorded bool) {
	annotations = map[string]any{}
	for _, key := range answerKeys {
		if _, ok := pod.Annotations[key]; ok {
			annotations[key] = nil
		}
	}
	return annotations, assignedCondition(pod) != nil
}

// GrantEdited reports whether an update changes the annotations on which a pod's devices rest: those by which it asked
// and those by which it was told. What an agent writes in the course of its work is no edit.
func GrantEdited(before, after *v1.Pod) bool {
	return slices.ContainsFunc(grantKeys, func(key string) bool {
		was, had := before.Annotations[key]
		is, has := after.Annotations[key]
		return had != has || was != is
	})
}

// AssignedDevices are the device indices that a bound pod was told: its grant, or else the answer in whichever dialect
// it is; nil when there is none or it cannot be read. Those of an answer say what the pod goes by, not what it holds.
func AssignedDevices(pod *v1.Pod) []int {
	if a, ok := Granted(pod); ok {
		return a.Devices
	}
	var devices []int
	for _, held := range told(pod, &Node{}, 0, gpu.Share{}) {
		devices = append(devices, held.device)
	}
	return devices
}

// told reads the first answer that the pod carries.
func told(pod *v1.Pod, node *Node, count int, share gpu.Share) []deviceShare {
	for _, d := range dialects {
		if d.answered(pod) {
			return d.told(pod, node, count, share)
		}
	}
	return nil
}

// answered reports whether the pod was told its devices in the dialect, or claims so.
func (d *dialect) answered(pod *v1.Pod) bool {
	return slices.ContainsFunc(d.answers, func(key string) bool { _, ok := pod.Annotations[key]; return ok })
}

// refuseWhole says that a share was asked for beside whole GPUs or in two dialects.
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
	return &wellknown.BadValue{Object: "pod", Kind: "annotation", Key: key, Value: value,
		Allowed: "allowed together with " + other}
}

func joinIndices(devices []int, separator string) string {
	parts := make([]string, len(devices))
	for i, d := range devices {
		parts[i] = strconv.Itoa(d)
	}
	return strings.Join(parts, separator)
}

// splitIndices reads a list of that many distinct indices, or of any number with 0. The pod holds a share of each. nil
// when it is none.
func splitIndices(value, separator string, count int, share gpu.Share) []deviceShare {
	var devices []deviceShare
	seen := map[int]bool{}
	for field := range strings.SplitSeq(value, separator) {
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
