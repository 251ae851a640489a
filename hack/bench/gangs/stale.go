package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"berth.dev/berth/hack/bench/live"
	"berth.dev/berth/hack/bench/rig"
)

// staleAtMost ends a measurement of reasons that never follow.
const staleAtMost = 10 * time.Minute

// changeFigures are how soon what is written follows a change of the cluster.
type changeFigures struct {
	Change                 string        `json:"change"`
	SchedulerCPUSeconds    float64       `json:"schedulerCPUSeconds"`
	ControlPlaneCPUSeconds float64       `json:"controlPlaneCPUSeconds"`
	PodGroups              followFigures `json:"podGroups"`
	Members                followFigures `json:"members"`
}

// followFigures are after how many seconds objects said what is true.
type followFigures struct {
	Median float64 `json:"medianSeconds"`
	P99    float64 `json:"p99Seconds"`
	Last   float64 `json:"lastSeconds"`
}

// printChanges prints a row for each change, with the CPU that was used until all objects said what is true.
func printChanges(out io.Writer, all []changeFigures) error {
	return rig.Table(out, []string{"after"}, func(f changeFigures) []string { return []string{f.Change} },
		[]rig.Figure[changeFigures]{
			rig.Column("PodGroups say so,\nmedian s", "%.1f", func(f changeFigures) float64 { return f.PodGroups.Median }),
			rig.Column("p99", "%.1f", func(f changeFigures) float64 { return f.PodGroups.P99 }),
			rig.Column("last", "%.1f", func(f changeFigures) float64 { return f.PodGroups.Last }),
			rig.Column("members,\nmedian s", "%.1f", func(f changeFigures) float64 { return f.Members.Median }),
			rig.Column("p99", "%.1f", func(f changeFigures) float64 { return f.Members.P99 }),
			rig.Column("last", "%.1f", func(f changeFigures) float64 { return f.Members.Last }),
			rig.Column("scheduler\nCPU s", "%.2f", func(f changeFigures) float64 { return f.SchedulerCPUSeconds }),
			rig.Column("control plane\nCPU s", "%.2f", func(f changeFigures) float64 { return f.ControlPlaneCPUSeconds }),
		}, all)
}

// followChanges measures how long what is written about gangs that wait says what was true before: a node comes, which
// changes the reason of every gang, and goes again.
func followChanges(ctx context.Context, bed *live.Bed, scheduler *live.Process, namespace string) ([]changeFigures,
	error) {
	const name = "one-more"
	extra := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	capacity := v1.ResourceList{v1.ResourceCPU: resource.MustParse("64"), v1.ResourceMemory: resource.MustParse("256Gi"),
		v1.ResourcePods: resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("8")}
	extra.Status = v1.NodeStatus{Capacity: capacity, Allocatable: capacity,
		Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}
	var all []changeFigures
	for _, change := range []struct {
		what string
		// nodes is how many there are then.
		nodes int
		do    func() error
	}{
		{"came", *nodes + 1, func() error {
			_, err := bed.Client.CoreV1().Nodes().Create(ctx, extra, metav1.CreateOptions{})
			return err
		}},
		{"went", *nodes, func() error { return bed.Client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}) }},
	} {
		figures, err := follow(ctx, bed, scheduler, namespace, fmt.Sprintf("(%d nodes with too little", change.nodes),
			change.do)
		if err != nil {
			return nil, fmt.Errorf("after a node %s: %w", change.what, err)
		}
		figures.Change = "a node " + change.what
		all = append(all, figures)
	}
	return all, nil
}

// follow makes a change and waits until all gangs and their members say the words.
func follow(ctx context.Context, bed *live.Bed, scheduler *live.Process, namespace, words string,
	change func() error) (changeFigures, error) {
	ctx, cancel := context.WithTimeout(ctx, staleAtMost)
	defer cancel()
	groups, err := bed.Dynamic.Resource(podGroups).Namespace(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return changeFigures{}, fmt.Errorf("watching PodGroups: %w", err)
	}
	defer groups.Stop()
	pods, err := bed.Client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return changeFigures{}, fmt.Errorf("watching pods: %w", err)
	}
	defer pods.Stop()
	// Seconds by the name of the object.
	ofGroups, ofPods := map[string]float64{}, map[string]float64{}
	use, err := bed.Measure(ctx, scheduler, func() error {
		if err := change(); err != nil {
			return err
		}
		changed := time.Now()
		for len(ofGroups) < *stuck || len(ofPods) < 2**stuck {
			var event watch.Event
			var open bool
			said := ofGroups
			select {
			case event, open = <-groups.ResultChan():
			case event, open = <-pods.ResultChan():
				said = ofPods
			case <-ctx.Done():
				return fmt.Errorf("%d of %d gangs and %d members say what is true: %w", len(ofGroups), *stuck, len(ofPods),
					context.Cause(ctx))
			}
			if !open {
				return errors.New("the watch has ended")
			}
			name, message := messageOf(event)
			if _, known := said[name]; !known && strings.Contains(message, words) {
				said[name] = time.Since(changed).Seconds()
			}
		}
		return nil
	})
	if err != nil {
		return changeFigures{}, err
	}
	return changeFigures{
		SchedulerCPUSeconds: use.SchedulerCPU.Seconds(), ControlPlaneCPUSeconds: use.ControlPlaneCPU.Seconds(),
		PodGroups: followsOf(ofGroups), Members: followsOf(ofPods),
	}, nil
}

func followsOf(said map[string]float64) followFigures {
	all := slices.Collect(maps.Values(said))
	return followFigures{rig.Percentile(all, 50), rig.Percentile(all, 99), rig.Percentile(all, 100)}
}

// messageOf returns the name of the PodGroup or pod, and why it is said to wait.
func messageOf(event watch.Event) (name, message string) {
	switch about := event.Object.(type) {
	case *v1.Pod:
		for _, c := range about.Status.Conditions {
			if c.Type == v1.PodScheduled {
				message = c.Message
			}
		}
		return about.Name, message
	case *unstructured.Unstructured:
		conditions, _, err := unstructured.NestedSlice(about.Object, "status", "conditions")
		if err != nil {
			return about.GetName(), ""
		}
		for _, c := range conditions {
			if fields, ok := c.(map[string]any); ok && fields["type"] == "Scheduled" {
				message, _ = fields["message"].(string)
			}
		}
		return about.GetName(), message
	default:
		return "", ""
	}
}
