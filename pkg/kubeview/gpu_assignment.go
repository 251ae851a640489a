package kubeview

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu"
)

// AssignmentAnnotations are the annotations by which a pod and the agents of its node learn which devices it holds, in
// the dialect in which the pod asked.
func AssignmentAnnotations(d Dialect, a Assignment, now time.Time) map[string]string {
	switch {
	case d == DialectKAI:
		return map[string]string{kaiIndexKey: joinIndices(a.Devices, ",")}
	case d == DialectHAMi && len(a.UUIDs) > 0:
		return hamiAnnotations(a)
	default:
		return map[string]string{
			openbIndexKey: joinIndices(a.Devices, "-"),
			openbTimeKey:  strconv.FormatInt(now.UnixNano(), 10),
		}
	}
}

// hamiAnnotations list the devices of the pod's one container: "uuid,NVIDIA,MiB,cores:" each, and ";" at the end.
func hamiAnnotations(a Assignment) map[string]string {
	var list strings.Builder
	for _, i := range a.Devices {
		if i < len(a.UUIDs) {
			fmt.Fprintf(&list, "%s,NVIDIA,%d,%d:", a.UUIDs[i], a.Share.MemMiB, a.Share.Milli*100/gpu.WholeMilli)
		}
	}
	list.WriteByte(';')
	return map[string]string{hamiNodeKey: a.Node, hamiAllocateKey: list.String(), hamiAllocatedKey: list.String()}
}

func joinIndices(devices []int, separator string) string {
	parts := make([]string, len(devices))
	for i, d := range devices {
		parts[i] = strconv.Itoa(d)
	}
	return strings.Join(parts, separator)
}

// AssignedDevices reads the device indices from a pod's annotations, in whichever dialect they are; nil when there
// are none or they cannot be read.
func AssignedDevices(pod *v1.Pod, uuids []string) []int {
	if value, ok := pod.Annotations[openbIndexKey]; ok {
		return splitIndices(value, "-")
	}
	if value, ok := pod.Annotations[kaiIndexKey]; ok {
		return splitIndices(value, ",")
	}
	value, ok := pod.Annotations[hamiAllocatedKey]
	if !ok {
		value, ok = pod.Annotations[hamiAllocateKey]
	}
	if !ok {
		return nil
	}
	var devices []int
	for record := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ':' || r == ';' }) {
		uuid, _, _ := strings.Cut(record, ",")
		i := slices.Index(uuids, uuid)
		if i < 0 {
			return nil
		}
		devices = append(devices, i)
	}
	return devices
}

func splitIndices(value, separator string) []int {
	var devices []int
	for field := range strings.SplitSeq(value, separator) {
		i, err := strconv.Atoi(field)
		if err != nil || i < 0 || i >= maxNodeGPUs {
			return nil
		}
		devices = append(devices, i)
	}
	return devices
}
