package gpuview

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/wellknown"
)

// InUseLasts is for how long GPUsInUseKey counts after the time that GPUsInUseAtKey gives.
const InUseLasts = 15 * time.Minute

// EncodeInUseAt is the value of GPUsInUseAtKey.
func EncodeInUseAt(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// ParseInUseAt reads the value of GPUsInUseAtKey.
func ParseInUseAt(value string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, fmt.Errorf("parsing time: %w", err)
	}
	return at, nil
}

// inUseIsOld reports whether the agent stopped looking. The time is held against the kubelet's last report, which has
// the same clock, so that the answer depends on the node alone and changes with it. Without a time the value counts as
// it stands, and so it does where the kubelet gives no time.
func (b *nodeReader) inUseIsOld() bool {
	value, ok := b.node.Annotations[wellknown.GPUsInUseAtKey]
	if !ok {
		return false
	}
	at, err := ParseInUseAt(value)
	if err != nil {
		b.reject("annotation", wellknown.GPUsInUseAtKey, value, "a time such as 2026-01-31T15:04:05Z")
		return false
	}
	for _, c := range b.node.Status.Conditions {
		if c.Type == v1.NodeReady && c.LastHeartbeatTime.Sub(at) > InUseLasts {
			b.reject("annotation", wellknown.GPUsInUseAtKey, value,
				fmt.Sprintf("up to date: the kubelet's last report is more than %s later, so %s is ignored",
					InUseLasts, wellknown.GPUsInUseKey))
			return true
		}
	}
	return false
}
