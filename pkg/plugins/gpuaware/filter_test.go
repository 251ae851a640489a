package gpuaware

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// ignoreHAMi keeps the stock plugin from asking nodes for resources that only HAMi knows.
func ignoreHAMi(profile *schedulerapi.KubeSchedulerProfile) {
	args := profile.PluginConfig[1].Args.(*schedulerapi.NodeResourcesFitArgs)
	args.IgnoredResources = []string{"nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"}
}

func gpuOnly(p *schedulerapi.KubeSchedulerProfile) *schedulerapi.KubeSchedulerProfile {
	for _, set := range []*schedulerapi.PluginSet{&p.Plugins.PreFilter, &p.Plugins.Filter} {
		set.Enabled = set.Enabled[1:]
	}
	p.PluginConfig = p.PluginConfig[:1]
	return p
}

func TestFilterAndScoreWorkWithoutPreFilter(t *testing.T) {
	t.Parallel()
	profile := alone(defaultArgs())
	profile.Plugins.PreFilter.Enabled = nil
	profile.Plugins.Filter.Enabled = profile.Plugins.Filter.Enabled[1:]
	profile.PluginConfig = profile.PluginConfig[:1]
	h := newHarness(t, profile, gpuNodeObject("a", 2, "Tesla-T4"), gpuNodeObject("b", 8, "Tesla-T4"))
	_, scores, err := h.evaluate(t, h, podObject("p", strs{"nvidia.com/gpu": "4"}, nil))
	if err != nil || len(scores) != 1 || scores[0].Name != "b" {
		t.Errorf("scores = %v, error %v, want node b alone", scores, err)
	}
	if _, _, err = h.evaluate(t, h, podObject("p", nil, strs{"gpu-fraction": "x"})); err == nil ||
		!strings.Contains(err.Error(), "gpu-fraction") {
		t.Errorf("error = %v, want the bad key", err)
	}
}

func cpuNode(name string) *v1.Node {
	n := gpuNodeObject(name, 0, "")
	n.Labels = strs{}
	delete(n.Status.Allocatable, "nvidia.com/gpu")
	return n
}
