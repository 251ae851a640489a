package nodeagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/wellknown"
)

const (
	// requestTimeout bounds one request to the API server.
	requestTimeout = 15 * time.Second
	// fieldManager is the name under which the API server records who set the annotation.
	fieldManager = "berth-node-agent"
	// failsAfter is for how long nvidia-smi may fail before /healthz does.
	failsAfter = 5 * time.Minute
	// The pauses after failures grow to the longest.
	firstPause, longestPause = time.Second, time.Minute
)

// Agent publishes the links of one node.
type Agent struct {
	client kubernetes.Interface
	// node is the name of the node.
	node string
	// nvidiaSMI is the path of nvidia-smi or its name in the PATH, timeout how long it may take.
	nvidiaSMI string
	timeout   time.Duration
	// interval is the time between two readings.
	interval time.Duration

	metrics *metrics
	// failing is since when nvidia-smi fails without hanging, in nanoseconds of Unix time; 0 if it does not.
	failing atomic.Int64
}

// New makes an agent.
func New(client kubernetes.Interface, node, nvidiaSMI string, timeout, interval time.Duration) *Agent {
	return &Agent{client: client, node: node, nvidiaSMI: nvidiaSMI, timeout: timeout, interval: interval,
		metrics: newMetrics()}
}

// Run reads and publishes until the context ends.
func (a *Agent) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	pauses := wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.2, Steps: 10, Cap: longestPause}
	pause := pauses
	failed := ""
	for {
		next := a.interval
		err := a.publish(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			next = pause.Step()
			if text := err.Error(); text != failed {
				failed = text
				logger.Error(err, "Publishing failed; will try again")
			}
		default:
			pause = pauses
			if failed != "" {
				failed = ""
				logger.Info("Publishing again")
			}
		}
		select {
		case <-ctx.Done():
			logger.Info("Stopping; the annotation stays")
			return
		case <-time.After(next):
		}
	}
}

// publish brings the annotation in line with what nvidia-smi says.
func (a *Agent) publish(ctx context.Context) error {
	links, err := a.links(ctx)
	a.note(ctx, err)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	written, err := a.write(ctx, links)
	switch {
	case err != nil:
		a.metrics.writes.WithLabelValues(resultFailed).Inc()
		return fmt.Errorf("writing annotation %s: %w", wellknown.GPULinksKey, err)
	case written:
		a.metrics.writes.WithLabelValues(resultDone).Inc()
		klog.FromContext(ctx).V(2).Info("Wrote annotation", "key", wellknown.GPULinksKey, "value", ptr.Deref(links, ""))
	}
	return nil
}

// links returns the value of the annotation, nil on a machine with one GPU.
func (a *Agent) links(ctx context.Context) (*string, error) {
	text, err := ask(ctx, a.nvidiaSMI, a.timeout)
	if err != nil {
		return nil, err
	}
	n, links, err := parseTopology(text)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of nvidia-smi topo -m: %w", err)
	}
	if n < 2 {
		return nil, nil
	}
	value, err := gpuview.EncodeLinks(links)
	return &value, err
}

// note records the result of a reading.
func (a *Agent) note(ctx context.Context, err error) {
	switch {
	case err == nil:
		a.failing.Store(0)
		a.metrics.lastRead.SetToCurrentTime()
		return
	case ctx.Err() != nil:
		return
	case errors.Is(err, errHangs):
		a.failing.Store(0)
	default:
		a.failing.CompareAndSwap(0, time.Now().UnixNano())
	}
	a.metrics.failures.Inc()
}

// write sets the annotation, or removes it where the value is nil, if the node has another one.
func (a *Agent) write(ctx context.Context, value *string) (written bool, err error) {
	nodes := a.client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, a.node, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	if now, ok := node.Annotations[wellknown.GPULinksKey]; ok == (value != nil) && (!ok || now == *value) {
		return false, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]*string{wellknown.GPULinksKey: value}}})
	if err != nil {
		return false, fmt.Errorf("encoding the patch: %w", err)
	}
	_, err = nodes.Patch(ctx, a.node, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return err == nil, err
}

// alive returns an error when nvidia-smi has failed for too long. A container is given the driver when it is created:
// one that was created before the driver was installed or replaced never sees the new driver, and a restart cures that.
// No restart cures a driver that hangs.
func (a *Agent) alive() error {
	since := a.failing.Load()
	if failing := time.Since(time.Unix(0, since)); since != 0 && failing >= failsAfter {
		return fmt.Errorf("nvidia-smi has failed for %s: want a new container with the driver", failing.Round(time.Second))
	}
	return nil
}
