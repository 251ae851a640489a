package gpuview

import (
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu"
)

// Keys of open-gpu-share. Nothing on a node enforces such a share: the index is for an agent that the user runs.
const (
	OpenbMilliKey = "alibabacloud.com/gpu-milli"
	OpenbCountKey = "alibabacloud.com/gpu-count"
	openbModelKey = "alibabacloud.com/gpu-card-model"
	openbIndexKey = "alibabacloud.com/gpu-index"
	openbTimeKey  = "alibabacloud.com/assume-time"
)

var openb = dialect{
	asks:    []string{OpenbMilliKey, OpenbCountKey, openbModelKey},
	answers: []string{openbIndexKey}, passing: []string{openbTimeKey},
	read: readOpenb, encode: encodeOpenb, decode: indicesUnder(openbIndexKey, "-"),
}

// readOpenb reads gpu-milli (compute of each GPU) and gpu-count (1 when absent).
func readOpenb(_ *Keys, pod *v1.Pod, ask gpuAsk, r *Request) error {
	milliText, hasMilli := pod.Annotations[OpenbMilliKey]
	countText, hasCount := pod.Annotations[OpenbCountKey]
	if !hasMilli && !hasCount {
		return nil
	}
	milli, count := gpu.WholeMilli, 1
	var err error
	if hasMilli {
		if milli, err = parseCount(OpenbMilliKey, milliText, 0, gpu.WholeMilli); err != nil {
			return err
		}
	}
	if hasCount {
		if count, err = parseCount(OpenbCountKey, countText, 0, MaxGPUs); err != nil {
			return err
		}
	}
	if milli == 0 || count == 0 {
		if hasMilli && hasCount && milli != count {
			return badAnnotation(OpenbMilliKey, milliText,
				"allowed together with "+OpenbCountKey+": "+countText+"; both or neither must be 0")
		}
		return nil
	}
	key, text := OpenbMilliKey, milliText
	if !hasMilli {
		key, text = OpenbCountKey, countText
	}
	if err := refuseWhole(key, text, ask, r); err != nil {
		return err
	}
	r.Dialect, r.Shared, r.Count, r.Milli = DialectOpenb, true, count, milli
	return nil
}

func encodeOpenb(_ *v1.Pod, _ *Request, a Assignment, now time.Time) (map[string]string, error) {
	return map[string]string{openbIndexKey: joinIndices(a.Devices, "-"),
		openbTimeKey: strconv.FormatInt(now.UnixNano(), 10)}, nil
}
