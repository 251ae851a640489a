package main

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/hack/bench/live"
)

// recipe is how a contender's configuration comes about: the installed one, or the default profile of kube-scheduler with
// arguments of its plugins.
type recipe struct {
	name, description, profile, args string
}

// Describe is for the flag that chooses among the contenders.
func (r recipe) Describe() (name, description string) { return r.name, r.description }

var recipes = []recipe{
	{"stock", "the default profile of kube-scheduler", v1.DefaultSchedulerName, ""},
	{"stock-no-spread", "stock without default topology spread constraints", v1.DefaultSchedulerName,
		"{name: PodTopologySpread, args: {defaultingType: List}}"},
	{"stock-most-allocated", "stock that packs by CPU and memory", v1.DefaultSchedulerName,
		"{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}, " +
			"{name: memory, weight: 1}]}}}"},
	{"berth", "berth-scheduler as installed", "berth-scheduler", ""},
	{"gpu-aware", "gpu-aware-scheduler as installed", "gpu-aware-scheduler", ""},
}

func (r recipe) contender() live.Contender {
	if r.profile != v1.DefaultSchedulerName {
		return live.Installed(r.name, r.profile)
	}
	c := live.Stock()
	c.Name = r.name
	if r.args != "" {
		c.Config = fmt.Appendf(c.Config, "profiles: [{schedulerName: %s, pluginConfig: [%s]}]\n", r.profile, r.args)
	}
	return c
}
