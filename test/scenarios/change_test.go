package scenarios_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// doFinish lets pods that run end, well or not, or lets some that have failed be reported as running again, which a
// late update of a kubelet may do.
func (w *world) doFinish(ctx context.Context, l *line) error {
	n, err := l.int(1)
	if err != nil {
		return err
	}
	from, to := v1.PodRunning, v1.PodSucceeded
	switch l.command {
	case "fail":
		to = v1.PodFailed
	case "revive":
		from, to = v1.PodFailed, v1.PodRunning
	}
	find := func() ([]*v1.Pod, error) {
		return w.some(ctx, l.arg(0), n, func(p *v1.Pod) bool {
			for key, value := range l.with("label:") {
				if p.Labels[key] != value {
					return false
				}
			}
			return p.Status.Phase == from
		})
	}
	var pods []*v1.Pod
	// A pod that was just bound runs a moment later.
	if err := w.eventually(ctx, 10*time.Second, func() (err error) { pods, err = find(); return err }); err != nil {
		return err
	}
	for _, p := range pods {
		w.phase(ctx, p, to)
	}
	// What was ended here must not be counted as running by the next command.
	return w.eventually(ctx, 10*time.Second, func() error {
		for _, p := range pods {
			if now := w.pod(p); now != nil && now.Status.Phase == from {
				return fmt.Errorf("pod %s is still %s", p.Name, from)
			}
		}
		return nil
	})
}

// pod returns the pod as last looked at, nil if it is gone.
func (w *world) pod(p *v1.Pod) *v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.pods[p.Namespace+"/"+p.Name]; now != nil && now.UID == p.UID {
		return now
	}
	return nil
}

// doJoin gives pods the label of a gang, or with leave takes it from them.
func (w *world) doJoin(ctx context.Context, l *line) error {
	count, group := 2, any(l.arg(1))
	if l.command == "leave" {
		count, group = 1, nil
	}
	n, err := l.int(count)
	if err != nil {
		return err
	}
	pods, err := w.some(ctx, l.arg(0), n, func(p *v1.Pod) bool {
		_, member := p.Labels[groupLabel]
		return l.command == "join" || member
	})
	if err != nil {
		return err
	}
	return w.patchLabels(ctx, pods, map[string]any{groupLabel: group})
}

func (w *world) patchLabels(ctx context.Context, pods []*v1.Pod, labels map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return err
	}
	for _, p := range pods {
		if _, err := w.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// doAnnotate changes annotations of a PodGroup.
func (w *world) doAnnotate(ctx context.Context, l *line) error {
	namespace, name := w.locate(l.arg(0))
	annotations := l.with("annotation:")
	for key, value := range annotations {
		annotations[key] = timed(value)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	_, err = w.dynamic.Resource(podGroups).Namespace(namespace).Patch(ctx, name, types.MergePatchType, patch,
		metav1.PatchOptions{})
	return err
}

// doTerminateAfter sets how long deleted pods take to go, those of a set or all others.
func (w *world) doTerminateAfter(_ context.Context, l *line) error {
	after, err := time.ParseDuration(l.arg(0))
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.terminateAfter[setOf(l.arg(1))] = after
	return nil
}

// doPatience sets how long a gang may be seen partly bound.
func (w *world) doPatience(_ context.Context, l *line) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.patience, err = time.ParseDuration(l.arg(0))
	return err
}

func (w *world) doCordon(ctx context.Context, l *line) error {
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, l.command == "cordon")
	for _, node := range l.args {
		if _, err := w.client.CoreV1().Nodes().Patch(ctx, w.name+"-"+node, types.StrategicMergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// doTaint gives nodes a taint that keeps pods off, or with untaint takes all of theirs away.
func (w *world) doTaint(ctx context.Context, l *line) error {
	taints := []v1.Taint{}
	if l.command == "taint" {
		taints = []v1.Taint{{Key: l.option("key", ""), Effect: v1.TaintEffectNoSchedule}}
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": taints}})
	if err != nil {
		return err
	}
	for _, node := range l.args {
		if _, err := w.client.CoreV1().Nodes().Patch(ctx, w.name+"-"+node, types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// doBreak has a GPU of each node fail, at the same time: the kubelet offers the others.
func (w *world) doBreak(ctx context.Context, l *line) error {
	return inParallel(len(l.args), func(i int) error { return w.breakGPU(ctx, l.args[i]) })
}

func (w *world) breakGPU(ctx context.Context, name string) error {
	nodes := w.client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, w.name+"-"+name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	gpus := node.Status.Capacity.Name("nvidia.com/gpu", resource.DecimalSI).Value()
	offered := fmt.Appendf(nil, `{"status":{"allocatable":{"nvidia.com/gpu":"%d"}}}`, gpus-1)
	_, err = nodes.Patch(ctx, node.Name, types.StrategicMergePatchType, offered, metav1.PatchOptions{}, "status")
	return err
}

// doUpdate changes what nodes have, or labels of theirs.
func (w *world) doUpdate(ctx context.Context, l *line) error {
	labels, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": l.with("label:")}})
	if err != nil {
		return err
	}
	amounts := l.with("has:")
	for _, short := range []v1.ResourceName{"gpu", v1.ResourceCPU} {
		if amount := l.option(string(short), ""); amount != "" {
			name := short
			if short == "gpu" {
				name = "nvidia.com/gpu"
			}
			amounts[string(name)] = amount
		}
	}
	status, err := json.Marshal(map[string]any{"status": map[string]any{"capacity": amounts, "allocatable": amounts}})
	if err != nil {
		return err
	}
	for _, node := range l.args {
		name := w.name + "-" + node
		if _, err := w.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, labels,
			metav1.PatchOptions{}); err != nil {
			return err
		}
		if _, err := w.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, status, metav1.PatchOptions{},
			"status"); err != nil {
			return err
		}
	}
	return nil
}
