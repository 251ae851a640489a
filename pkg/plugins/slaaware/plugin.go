// Package slaaware is the plugin that puts pods where they meet their objectives.
//
// A pod that states a latency or a throughput prefers nodes whose measured figures meet it, and among them those with
// the least excess beyond some headroom; among nodes that miss it, those that miss it by less. Queries to Prometheus
// that run in the background measure the figures. A node without a figure counts more than one that misses the
// objective and less than one that meets it. Pods without an objective are not affected, and no node is ever ruled out.
package slaaware

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/signals"
)

// Name of the plugin in configurations.
const Name = "SLAAware"

// Plugin is the SLAAware plugin of one profile.
type Plugin struct {
	reader   *signals.Reader[signals.FigureSnapshot]
	headroom float64
}

var (
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.PreScorePlugin    = &Plugin{}
	_ fwk.ScorePlugin       = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
)

// New makes the plugin for one profile.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, err := config.Checked[*config.SLAAwareArgs](obj, handle.ProfileName(), Name)
	if err != nil {
		return nil, err
	}
	factory := handle.SharedInformerFactory()
	reader, err := signals.StartFigures(ctx, factory, args.Signals, namesOf(factory.Core().V1().Nodes().Lister()))
	if err != nil {
		return nil, fmt.Errorf("reading figures for profile %s: %w", handle.ProfileName(), err)
	}
	return &Plugin{reader: reader, headroom: float64(*args.HeadroomPercent) / 100}, nil
}

// namesOf returns the nodes as series may name them.
func namesOf(nodes corelisters.NodeLister) func() []signals.Node {
	return func() []signals.Node {
		all, err := nodes.List(labels.Everything())
		if err != nil {
			klog.Background().Error(err, "Listing nodes to read their figures")
			return nil
		}
		named := make([]signals.Node, len(all))
		for i, node := range all {
			named[i] = signals.Node{Name: node.Name, Hostname: node.Labels[v1.LabelHostname]}
		}
		return named
	}
}

// Name returns the plugin's name.
func (*Plugin) Name() string { return Name }

// SignPod returns the pod's objective. A node's score depends on it and on the node alone, so that pods that are alike
// here may share a scheduling cycle's result.
func (*Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	objective, bad := podview.PodObjective(pod)
	if bad != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, bad.Error())
	}
	return []fwk.SignFragment{{Key: "berth.dev/" + Name, Value: objective}}, nil
}

// EventsToRegister names the one event that helps a pod that the plugin has rejected: its objective can be understood
// now.
func (*Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{process.On(fwk.TargetPod, process.OwnChange, afterPodChange)}, nil
}

func afterPodChange(_, before, after *v1.Pod) bool {
	_, wrong := podview.PodObjective(before)
	_, bad := podview.PodObjective(after)
	return wrong != nil && bad == nil
}

// PreFilter rejects a pod whose objective cannot be understood. There is nothing to filter.
func (*Plugin) PreFilter(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult,
	*fwk.Status) {
	if _, bad := podview.PodObjective(pod); bad != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, bad.Error())
	}
	return nil, fwk.NewStatus(fwk.Skip)
}

// PreFilterExtensions returns nil: an objective does not depend on other pods.
func (*Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }
