package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/hack/bench/live"
)

// recipe is how a contender's configuration comes about: the installed one, if it has a plugin of ours without it, or
// the default profile of kube-scheduler with arguments of its plugins.
type recipe struct {
	name, description, profile string
	without, args              string
}

// Describe is for the flag that chooses among the contenders.
func (r recipe) Describe() (name, description string) { return r.name, r.description }

var recipes = []recipe{
	{"stock", "the default profile of kube-scheduler", v1.DefaultSchedulerName, "", ""},
	{"stock-no-spread", "stock without default topology spread constraints", v1.DefaultSchedulerName, "",
		"{name: PodTopologySpread, args: {defaultingType: List}}"},
	{"stock-most-allocated", "stock that packs by CPU and memory", v1.DefaultSchedulerName, "",
		"{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}, " +
			"{name: memory, weight: 1}]}}}"},
	{"berth", "berth-scheduler as installed", "berth-scheduler", "", ""},
	{"berth-no-gpu", "berth-scheduler without GPUAware", "berth-scheduler", "GPUAware", ""},
	{"berth-no-cost", "berth-scheduler without CostOptimized", "berth-scheduler", "CostOptimized", ""},
	{"berth-no-gangs", "berth-scheduler without Coscheduling", "berth-scheduler", "Coscheduling", ""},
	{"gpu-aware", "gpu-aware-scheduler as installed", "gpu-aware-scheduler", "", ""},
}

func (r recipe) contender() (c live.Contender, err error) {
	c = live.Installed(r.name, r.profile)
	switch {
	case r.profile == v1.DefaultSchedulerName:
		c = live.Stock()
		c.Name = r.name
		if r.args != "" {
			c.Config = fmt.Appendf(c.Config, "profiles: [{schedulerName: %s, pluginConfig: [%s]}]\n", r.profile, r.args)
		}
	case r.without != "":
		c.Config, err = removePlugin(c.Config, r.without)
	}
	return c, err
}

// makeContenders makes those of the recipes, and adds those of configuration files.
func makeContenders(chosen []recipe, files []live.Contender) ([]live.Contender, error) {
	var list []live.Contender
	for _, r := range chosen {
		c, err := r.contender()
		if err != nil {
			return nil, fmt.Errorf("making the configuration of contender %s: %w", r.name, err)
		}
		list = append(list, c)
	}
	for _, c := range files {
		if slices.ContainsFunc(list, func(other live.Contender) bool { return other.Name == c.Name }) {
			return nil, fmt.Errorf("contender %s is named twice", c.Name)
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errors.New("--contenders: name one, or a file with --config")
	}
	return list, nil
}

// fileContender reads FILE=PROFILE.
func fileContender(text string) (live.Contender, error) {
	path, profile, ok := strings.Cut(text, "=")
	if !ok || path == "" || profile == "" {
		return live.Contender{}, fmt.Errorf("%q is not allowed; want FILE=PROFILE", text)
	}
	config, err := os.ReadFile(path)
	if err != nil {
		return live.Contender{}, fmt.Errorf("reading a contender's configuration: %w", err)
	}
	known, err := profileNames(config)
	if err != nil {
		return live.Contender{}, fmt.Errorf("%s: %w", path, err)
	}
	if !slices.Contains(known, profile) {
		return live.Contender{}, fmt.Errorf("%s has no profile %q; it has %s", path, profile, strings.Join(known, ", "))
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) + ":" + profile
	return live.Contender{Name: name, Profile: profile, Config: config, Gates: live.InstalledGates}, nil
}

func profileNames(config []byte) ([]string, error) {
	var document struct {
		Profiles []struct {
			SchedulerName string `json:"schedulerName"`
		} `json:"profiles"`
	}
	if err := yaml.Unmarshal(config, &document); err != nil {
		return nil, fmt.Errorf("reading a scheduler configuration: %w", err)
	}
	var names []string
	for _, p := range document.Profiles {
		names = append(names, p.SchedulerName)
	}
	return names, nil
}

// removePlugin takes a plugin out of all profiles: wherever it is enabled or disabled, and its arguments. Where it was
// the only one enabled in place of the stock plugins, those come back: a scheduler needs a queue sort.
func removePlugin(config []byte, plugin string) ([]byte, error) {
	document := map[string]any{}
	if err := yaml.Unmarshal(config, &document); err != nil {
		return nil, fmt.Errorf("reading a scheduler configuration: %w", err)
	}
	profiles, _ := document["profiles"].([]any)
	removed := false
	for _, p := range profiles {
		profile, _ := p.(map[string]any)
		points, _ := profile["plugins"].(map[string]any)
		for name, p := range points {
			point, _ := p.(map[string]any)
			enabled := without(point, "enabled", plugin)
			removed = enabled || removed
			without(point, "disabled", plugin)
			if list, _ := point["enabled"].([]any); enabled && len(list) == 0 {
				delete(points, name)
			}
		}
		without(profile, "pluginConfig", plugin)
	}
	if !removed {
		return nil, fmt.Errorf("removing plugin %s: no profile enables it", plugin)
	}
	config, err := yaml.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("writing a scheduler configuration: %w", err)
	}
	return config, nil
}

// without takes the entry of a name out of a list in an object, and says whether there was one.
func without(object map[string]any, key, name string) bool {
	list, _ := object[key].([]any)
	kept := slices.DeleteFunc(slices.Clone(list), func(e any) bool {
		entry, _ := e.(map[string]any)
		return entry["name"] == name
	})
	if len(kept) == len(list) {
		return false
	}
	object[key] = kept
	return true
}
