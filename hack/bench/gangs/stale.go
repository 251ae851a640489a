package main

import (
	"context"
	"fmt"
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

// changeFigures are how soon what is written follows a change of the cluster: after how many seconds objects said what
// is true, and the CPU that was used until all did.
type changeFigures struct {
	Change                 string  `json:"change" row:"after"`
	PodGroupsMedian        float64 `json:"podGroupsMedianSeconds" column:"PodGroups say so,\nmedian s|%.1f"`
	PodGroupsP99           float64 `json:"podGroupsP99Seconds" column:"p99|%.1f"`
	PodGroupsLast          float64 `json:"podGroupsLastSeconds" column:"last|%.1f"`
	MembersMedian          float64 `json:"membersMedianSeconds" column:"members,\nmedian s|%.1f"`
	MembersP99             float64 `json:"membersP99Seconds" column:"p99|%.1f"`
	MembersLast            float64 `json:"membersLastSeconds" column:"last|%.1f"`
	SchedulerCPUSeconds    float64 `json:"schedulerCPUSeconds" column:"scheduler\nCPU s|%.2f"`
	ControlPlaneCPUSeconds float64 `json:"controlPlaneCPUSeconds" column:"control plane\nCPU s|%.2f"`
}

// followChanges measures how long what is written about gangs that wait says what was true before: a node comes, which
// changes the reason of every gang, and goes again.
func followChanges(bed *live.Bed, scheduler *live.Process, namespace string) []changeFigures {
	ctx, api := bed.Context(), bed.Client.CoreV1().Nodes()
	capacity := v1.ResourceList{v1.ResourceCPU: resource.MustParse("64"), v1.ResourceMemory: resource.MustParse("256Gi"),
		v1.ResourcePods: resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("8")}
	extra := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one-more"}, Status: v1.NodeStatus{Capacity: capacity,
		Allocatable: capacity, Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}}
	return []changeFigures{
		follow(bed, scheduler, namespace, "a node came", *nodes+1,
			func() { rig.Must(api.Create(ctx, extra, metav1.CreateOptions{})) }),
		follow(bed, scheduler, namespace, "a node went", *nodes,
			func() { rig.Fail(api.Delete(ctx, extra.Name, metav1.DeleteOptions{})) }),
	}
}

// follow makes a change and waits until all gangs and their members say how many nodes there are.
func follow(bed *live.Bed, scheduler *live.Process, namespace, what string, nodes int, change func()) changeFigures {
	ctx, cancel := context.WithTimeout(bed.Context(), staleAtMost)
	defer cancel()
	groups := rig.Must(bed.Dynamic.Resource(podGroups).Namespace(namespace).Watch(ctx, metav1.ListOptions{}))
	defer groups.Stop()
	pods := rig.Must(bed.Client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{}))
	defer pods.Stop()
	// Seconds by the name of the object.
	ofGroups, ofPods := map[string]float64{}, map[string]float64{}
	use := bed.Measure(scheduler, func() {
		change()
		changed := time.Now()
		for len(ofGroups) < *stuck || len(ofPods) < 2**stuck {
			var event watch.Event
			open, said := false, ofGroups
			select {
			case event, open = <-groups.ResultChan():
			case event, open = <-pods.ResultChan():
				said = ofPods
			case <-ctx.Done():
			}
			if !open {
				rig.Fail(fmt.Errorf("the watch has ended with %d of %d gangs and %d members that say there are %d nodes",
					len(ofGroups), *stuck, len(ofPods), nodes))
			}
			name, message := messageOf(event)
			if _, known := said[name]; !known && strings.Contains(message, fmt.Sprintf("(%d nodes with too little", nodes)) {
				said[name] = time.Since(changed).Seconds()
			}
		}
	})
	groupTimes, podTimes := slices.Collect(maps.Values(ofGroups)), slices.Collect(maps.Values(ofPods))
	return changeFigures{what,
		rig.Percentile(groupTimes, 50), rig.Percentile(groupTimes, 99), rig.Percentile(groupTimes, 100),
		rig.Percentile(podTimes, 50), rig.Percentile(podTimes, 99), rig.Percentile(podTimes, 100),
		use.SchedulerCPU.Seconds(), use.ControlPlaneCPU.Seconds()}
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
