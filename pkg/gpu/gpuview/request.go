package gpuview

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

const (
	// maxModels and longestModel bound a list of GPU products, and maxSliceKinds the hardware slices of one pod, because
	// what pods ask for is kept in memory. No value of a label, such as a node's product, is longer than longestModel.
	maxModels, longestModel = 32, 63
	maxSliceKinds           = 8
)

// MaxGPUs bounds the GPUs of a request and of a node. No node has more, but a unit of a resource may be a small part of
// a GPU without any sign of that.
const MaxGPUs = 1 << 14

// Request is what a pod asks for, and in which dialect.
type Request struct {
	gpu.Request
	Dialect Dialect
}

// gpuAsk is what the resources of a pod ask for, before the annotations are read.
type gpuAsk struct {
	resource string
	count    int
	hami     bool
}

// PodGPURequest reads what a pod asks of GPUs. The error is a *BadValue that names key, value and what is allowed.
func (k *Keys) PodGPURequest(pod *v1.Pod) (Request, error) {
	r, err := k.askedGPUs(pod)
	if err != nil {
		return r, err
	}
	if err := readConstraints(pod, &r); err != nil {
		return r, err
	}
	if err := refuseHAMiConditions(k, pod, &r); err != nil {
		return r, err
	}
	readWorkloadType(pod, &r)
	return r, nil
}

// askedGPUs reads how many GPUs a pod asks for, or what part of them.
func (k *Keys) askedGPUs(pod *v1.Pod) (Request, error) {
	var r Request
	requests := podview.Requests(pod)
	r.CPUMilli = requests.Cpu().MilliValue()
	ask, err := k.askedResources(requests, &r)
	if err != nil {
		return r, err
	}
	for _, d := range readingOrder {
		if err := d.read(k, pod, ask, &r); err != nil {
			return r, err
		}
	}
	if r.Dialect == DialectNone && ask.count > 0 {
		r.Resource, r.Count, r.Milli = ask.resource, ask.count, gpu.WholeMilli
	}
	if slices.Contains(k.SharedResources, ask.resource) {
		r.Sharing = gpu.SharingAllowed
	}
	return r, nil
}

// claimedGPUs is what a running pod without a grant counts for: what it asks for or, where that cannot be read, the
// GPUs among its resources, at least one because it was placed there.
func (k *Keys) claimedGPUs(pod *v1.Pod) gpu.Request {
	r, err := k.askedGPUs(pod)
	if err == nil {
		return r.Request
	}
	return gpu.Request{Count: max(1, k.countGPUs(pod)), Milli: gpu.WholeMilli}
}

// backedGPUs is what the pod asks for by resources alone: the kubelet admits the pod by these, and quotas count them.
func (k *Keys) backedGPUs(pod *v1.Pod) gpu.Request {
	plain := *pod
	plain.Annotations = nil
	r, err := k.askedGPUs(&plain)
	if err == nil {
		return r.Request
	}
	return gpu.Request{Count: k.countGPUs(pod), Milli: gpu.WholeMilli}
}

// countGPUs counts the GPUs among a pod's resources.
func (k *Keys) countGPUs(pod *v1.Pod) int {
	count := 0
	for name, q := range podview.Requests(pod) {
		if k.isGPU(string(name)) && !k.isSlice(string(name)) {
			count += clampCount(q)
		}
	}
	return min(count, MaxGPUs)
}

// MayUseGPU is a cheap test that is false only for pods without a granted GPU in which PodGPURequest certainly reads no
// GPU and no constraint.
func (k *Keys) MayUseGPU(pod *v1.Pod) bool {
	for key := range pod.Annotations {
		if key == wellknown.GPUAssignedKey || slices.Contains(askingAnnotations, key) {
			return true
		}
	}
	return k.AsksByResource(pod) || assignedCondition(pod) != nil
}

// AsksByResource reports whether the pod names a GPU resource, so that the kubelet counts its GPUs.
func (k *Keys) AsksByResource(pod *v1.Pod) bool {
	for _, containers := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			if k.named(containers[i].Resources.Requests) {
				return true
			}
		}
	}
	return pod.Spec.Resources != nil && k.named(pod.Spec.Resources.Requests)
}

// named reports whether the list has a GPU resource.
func (k *Keys) named(list v1.ResourceList) bool {
	for name := range list {
		if k.ReadsResource(string(name)) {
			return true
		}
	}
	return false
}

func (k *Keys) isGPU(name string) bool {
	return slices.Contains(k.Resources, name) || slices.Contains(k.SharedResources, name) || k.isSlice(name)
}

// isHAMi reports whether the resource asks for a part of a GPU.
func isHAMi(name string) bool { return slices.Contains(shareResources, name) }

// askedResources finds the GPU resources among a pod's requests.
func (k *Keys) askedResources(requests v1.ResourceList, r *Request) (gpuAsk, error) {
	var ask gpuAsk
	if !k.named(requests) {
		return ask, nil // most pods
	}
	for _, names := range [][]string{k.Resources, k.SharedResources} {
		for _, name := range names {
			q, ok := requests[v1.ResourceName(name)]
			if !ok || q.Sign() <= 0 {
				continue
			}
			if ask.count > 0 {
				return ask, badResource(name, q.String(), "allowed together with "+ask.resource+": ask for GPUs of one kind")
			}
			ask.resource, ask.count = name, clampCount(q)
		}
	}
	for name, q := range requests {
		switch {
		case isHAMi(string(name)) && q.Sign() > 0:
			ask.hami = true
		case k.isSlice(string(name)) && q.Sign() > 0:
			r.Slices = append(r.Slices, gpu.SliceCount{Resource: string(name), Count: clampCount(q),
				Milli: k.sliceMilli(string(name))})
		}
	}
	slices.SortFunc(r.Slices, func(a, b gpu.SliceCount) int { return strings.Compare(a.Resource, b.Resource) })
	if len(r.Slices) > maxSliceKinds {
		extra := r.Slices[maxSliceKinds].Resource
		r.Slices = nil
		return ask, badResource(extra, "set",
			fmt.Sprintf("one of at most %d kinds of GPU slices in one pod", maxSliceKinds))
	}
	if ask.hami && ask.resource != k.Resources[0] {
		return ask, badResource(hamiMemoryResource+" or "+hamiCoresResource, "set",
			"allowed without "+k.Resources[0]+", which says of how many GPUs")
	}
	return ask, nil
}

func quantity(list v1.ResourceList, name string) int64 {
	q, ok := list[v1.ResourceName(name)]
	if !ok {
		return 0
	}
	return max(0, q.Value())
}

func clampCount(q resource.Quantity) int { return int(min(q.Value(), MaxGPUs)) }

// readConstraints reads the annotations that restrict the choice of GPUs.
func readConstraints(pod *v1.Pod, r *Request) error {
	for _, read := range []func(*v1.Pod, *Request) error{readModels, readMinMemory, readInterconnect, readSharing} {
		if err := read(pod, r); err != nil {
			return err
		}
	}
	return nil
}

func readModels(pod *v1.Pod, r *Request) error {
	for _, key := range []string{wellknown.GPUModelsKey, openbModelKey} {
		value, ok := pod.Annotations[key]
		if !ok || (key == openbModelKey && value == "") {
			continue
		}
		models, err := parseModels(key, value)
		if err != nil {
			return err
		}
		if len(r.Models) > 0 && !slices.Equal(r.Models, models) {
			return badAnnotation(key, value, "allowed together with a different "+wellknown.GPUModelsKey)
		}
		r.Models = models
	}
	return nil
}

func readMinMemory(pod *v1.Pod, r *Request) error {
	value, ok := pod.Annotations[wellknown.GPUMemoryMinKey]
	if !ok {
		return nil
	}
	q, err := resource.ParseQuantity(value)
	if err != nil || q.Value() < 1<<20 || q.Value() > 1<<50 {
		return badAnnotation(wellknown.GPUMemoryMinKey, value,
			"a quantity of memory per GPU of 1Mi or more, such as 40Gi or 40000Mi")
	}
	r.MinMemMiB = int((q.Value() + 1<<20 - 1) >> 20)
	return nil
}

func readInterconnect(pod *v1.Pod, r *Request) error {
	switch value, ok := pod.Annotations[wellknown.GPUInterconnectKey]; {
	case !ok:
	case value == "required":
		r.Interconnect = gpu.InterconnectRequired
	case value == "preferred":
		r.Interconnect = gpu.InterconnectPreferred
	default:
		return badAnnotation(wellknown.GPUInterconnectKey, value, "required or preferred")
	}
	return nil
}

func readSharing(pod *v1.Pod, r *Request) error {
	switch value, ok := pod.Annotations[wellknown.GPUSharingKey]; {
	case !ok:
	case value == "exclusive" && (r.Shared || r.Sharing == gpu.SharingAllowed):
		return badAnnotation(wellknown.GPUSharingKey, value, "allowed together with a request for a part of a GPU")
	case value == "exclusive":
		r.Sharing = gpu.SharingExclusive
	case value == "shared":
		r.Sharing = gpu.SharingAllowed
	default:
		return badAnnotation(wellknown.GPUSharingKey, value, "exclusive or shared")
	}
	return nil
}

func badAnnotation(key, value, allowed string) error {
	return &wellknown.BadValue{Object: "pod", Kind: "annotation", Key: key, Value: value, Allowed: allowed}
}

func badResource(key, value, allowed string) error {
	return &wellknown.BadValue{Object: "pod", Kind: "resource", Key: key, Value: value, Allowed: allowed}
}

func parseModels(key, value string) ([]string, error) {
	models := strings.SplitN(value, "|", maxModels+1)
	for i, m := range models {
		models[i] = strings.TrimSpace(m)
		if i == maxModels || utf8.RuneCountInString(models[i]) > longestModel {
			return nil, badAnnotation(key, value, fmt.Sprintf(
				"a list of at most %d GPU products of at most %d characters, joined by |", maxModels, longestModel))
		}
		if models[i] == "" {
			return nil, badAnnotation(key, value, "a list of GPU products joined by |, such as Tesla-T4|NVIDIA-A10")
		}
		// The request outlives the pod and must not keep the whole value in memory, which may be padded with spaces.
		models[i] = strings.Clone(canonicalModel(models[i]))
	}
	slices.Sort(models)
	return slices.Compact(models), nil
}

// readWorkloadType reads a label that others may use too: unknown values mean nothing.
func readWorkloadType(pod *v1.Pod, r *Request) {
	switch strings.ToLower(pod.Labels[WorkloadTypeLabel]) {
	case "gpu-intensive":
		r.NeedsGPUNode = !r.WantsGPU()
	case "cpu-intensive":
		r.AvoidsGPUNode = !r.WantsGPU()
	}
}

// parseCount reads a whole number from low to high.
func parseCount(key, value string, low, high int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < low || n > high {
		return 0, badAnnotation(key, value, fmt.Sprintf("a whole number from %d to %d", low, high))
	}
	return n, nil
}

// parseFraction reads a part of a GPU as milli-GPU, rounded down, 1 at least, so that three pods of 0.3333 fit one GPU.
// Each share may be less than a thousandth of a GPU larger than it counts.
func parseFraction(key, value string) (int, error) {
	f, err := strconv.ParseFloat(value, 64)
	// The negated comparison refuses NaN too.
	if err != nil || !(f > 0 && f <= 1) {
		return 0, badAnnotation(key, value, "a decimal fraction of a GPU above 0 and up to 1, such as 0.5")
	}
	// 0.57 of a GPU is 570, although as a float64 it is a little less.
	return max(1, int(f*gpu.WholeMilli+1e-6)), nil
}
