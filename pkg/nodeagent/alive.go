package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/nodeagent/nvidiasmi"
)

// heartbeat is how often the loop turns with nothing to do.
const heartbeat = 10 * time.Second

// Alive returns an error when the loop has not turned for too long, or when the kubelet has known GPUs for as long as
// values stay published, and nvidia-smi has listed none. A container is given the driver when it is created: one that
// was created before the driver was installed or replaced never sees the new driver, and a restart cures that. No
// restart cures a driver that hangs.
func (a *Agent) Alive() error {
	at := a.turned.Load()
	if idle := time.Since(time.Unix(0, at)); at != 0 && idle > 6*heartbeat+requestTimeout {
		return fmt.Errorf("the agent's loop has stood still for %s", idle.Round(time.Second))
	}
	since := a.unseen.Load()
	if unseen := time.Since(time.Unix(0, since)); since != 0 && unseen >= a.intervals.Stale {
		return fmt.Errorf("the kubelet has GPUs, and nvidia-smi has listed none for %s: want a new container with the driver",
			unseen.Round(time.Second))
	}
	return nil
}

// noteUnseen notes whether the kubelet knows devices while nvidia-smi lists no GPU.
func (a *Agent) noteUnseen(ctx context.Context, now time.Time) {
	k, m := &a.fromKubelet, &a.fromMachine
	failed := m.err != nil && !errors.Is(m.err, nvidiasmi.ErrHangs)
	empty := m.err == nil && m.known && len(m.value.gpus) == 0
	devices := 0
	if k.known && now.Sub(k.good) < a.intervals.Stale && (failed || empty) {
		devices = max(len(k.value.Offered), len(k.value.Held))
	}
	a.metrics.unseen.Set(float64(devices))
	switch {
	case devices == 0:
		a.unseen.Store(0)
	case a.unseen.Load() == 0:
		a.unseen.Store(now.UnixNano())
		klog.FromContext(ctx).Info(
			"The kubelet has GPUs, and nvidia-smi lists none: if that lasts, /healthz fails for a new container",
			"devices", devices, "failsAfter", a.intervals.Stale)
	}
}
