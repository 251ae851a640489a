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

	"berth.dev/berth/hack/bench/rig"
)

// staleAtMost ends a measurement of reasons that never follow.
const staleAtMost = 10 * time.Minute

// followChanges measures how long what is written about gangs that wait says what was true before: a node comes, which
// changes the reason of every gang, and goes again.
func followChanges(ctx context.Context, bed *rig.Rig, scheduler *rig.Scheduler, namespace string,
	out io.Writer) ([]changeFigures, error) {
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
		figures.print(out)
		all = append(all, figures)
	}
	return all, nil
}

// follow makes a change and waits until all gangs and their members say the words.
func follow(ctx context.Context, bed *rig.Rig, scheduler *rig.Scheduler, namespace, words string,
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
	controlPlane, err := bed.ControlPlanePID()
	if err != nil {
		return changeFigures{}, err
	}
	gauges := func() (own, api time.Duration, err error) {
		own, err = scheduler.CPU()
		if err != nil {
			return 0, 0, err
		}
		api, err = rig.ProcessCPU(controlPlane)
		return own, api, err
	}
	ownBefore, apiBefore, err := gauges()
	if err != nil {
		return changeFigures{}, err
	}
	if err := change(); err != nil {
		return changeFigures{}, err
	}
	changed := time.Now()
	ofGroups, ofPods := map[string]time.Duration{}, map[string]time.Duration{}
	for len(ofGroups) < *stuck || len(ofPods) < 2**stuck {
		var event watch.Event
		var open bool
		said := ofGroups
		select {
		case event, open = <-groups.ResultChan():
		case event, open = <-pods.ResultChan():
			said = ofPods
		case <-ctx.Done():
			return changeFigures{}, fmt.Errorf("%d of %d gangs and %d members say what is true: %w", len(ofGroups), *stuck,
				len(ofPods), ctx.Err())
		}
		if !open {
			return changeFigures{}, errors.New("the watch has ended")
		}
		name, message := messageOf(event)
		if _, known := said[name]; !known && strings.Contains(message, words) {
			said[name] = time.Since(changed)
		}
	}
	ownAfter, apiAfter, err := gauges()
	if err != nil {
		return changeFigures{}, err
	}
	return changeFigures{
		SchedulerCPUSeconds: (ownAfter - ownBefore).Seconds(), ControlPlaneCPUSeconds: (apiAfter - apiBefore).Seconds(),
		PodGroups: followsOf(ofGroups), Members: followsOf(ofPods),
	}, nil
}

func followsOf(said map[string]time.Duration) followFigures {
	all := slices.Sorted(maps.Values(said))
	return followFigures{Median: all[len(all)/2].Seconds(), P99: all[len(all)*99/100].Seconds(),
		Last: all[len(all)-1].Seconds()}
}

func (f *changeFigures) print(out io.Writer) {
	_, _ = fmt.Fprintf(out, "%s; CPU until all say so: scheduler %.2f s, control plane %.2f s\n", f.Change,
		f.SchedulerCPUSeconds, f.ControlPlaneCPUSeconds)
	for _, of := range []struct {
		what string
		followFigures
	}{{"PodGroups", f.PodGroups}, {"members", f.Members}} {
		_, _ = fmt.Fprintf(out, "  %s say so after %.1f s in the median, 99%% after %.1f s, the last after %.1f s\n", of.what,
			of.Median, of.P99, of.Last)
	}
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
