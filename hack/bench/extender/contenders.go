package main

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/hack/bench/live"
)

// contender is a scheduler's configuration, and that of an extender it may call.
type contender struct {
	name, description string
	// profile are the lines under profiles: of the scheduler; empty: the stock profile.
	profile string
	// extender says which verbs the scheduler calls, and extenderProfile what is behind them.
	extender, extenderProfile string
}

const (
	head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	// filterOnly and filterAndScore enable the same in a scheduler and in an extender.
	filterOnly = `profiles:
  - schedulerName: default-scheduler
    plugins:
      preFilter: {enabled: [{name: GPUAware}]}
      filter: {enabled: [{name: GPUAware}]}
`
	filterAndScore = filterOnly + "      score: {enabled: [{name: GPUAware, weight: 20}]}\n"
	// allNodes lets the plugin look at as many nodes as the stock scheduler and the extender do.
	allNodes = "    pluginConfig: [{name: GPUAware, args: {candidates: 0}}]\n"

	filterVerb = "    nodeCacheCapable: true\n    filterVerb: filter\n"
	bothVerbs  = filterVerb + "    prioritizeVerb: prioritize\n    weight: 20\n"
)

var contenders = []contender{
	{name: "stock", description: "the stock profile alone"},
	{name: "filter-plugin", description: "Filter of GPUAware as a plugin", profile: filterOnly + allNodes},
	{name: "filter-extender", description: "the same as an extender", extender: filterVerb, extenderProfile: filterOnly},
	{name: "plugin", description: "Filter and Score of GPUAware as a plugin", profile: filterAndScore + allNodes},
	{name: "plugin-candidates", description: "the same with candidates, which is how we ship it", profile: filterAndScore},
	{name: "extender", description: "Filter and Score as an extender", extender: bothVerbs,
		extenderProfile: filterAndScore},
}

// Describe is for the flag that chooses among the contenders.
func (c contender) Describe() (name, description string) { return c.name, c.description }

// scheduler is the scheduler with its configuration.
func (c contender) scheduler(extender string) live.Contender {
	text := head + c.profile
	if c.extender != "" {
		text += fmt.Sprintf("extenders:\n  - urlPrefix: http://%s\n    httpTimeout: 30s\n%s", extender, c.extender)
	}
	return live.Contender{Name: c.name, Profile: v1.DefaultSchedulerName, Config: []byte(text)}
}
