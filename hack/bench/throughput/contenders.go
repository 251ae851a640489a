package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/manifests"
)

// shippedConfig is the installed scheduler's configuration, among the manifests.
const shippedConfig = "base/scheduler-config.yaml"

// stockName is the contender against which the others are compared.
const stockName = "stock"

// contender is a scheduler that is measured.
type contender struct {
	name string
	// profile is the schedulerName of the pods.
	profile string
	config  []byte
	gates   []string
}

// stockProfile is the schedulerName of the contenders that have no plugin of ours.
const stockProfile = "default-scheduler"

// recipe is how a contender's configuration comes about.
type recipe struct {
	name, description, profile string
	config                     func() ([]byte, error)
	gates                      []string
}

var recipes = []recipe{
	stockRecipe(stockName, "the default profile of kube-scheduler", nil),
	stockRecipe("stock-no-spread", "stock without default topology spread constraints", map[string]any{
		"PodTopologySpread": map[string]any{"defaultingType": "List"},
	}),
	stockRecipe("stock-most-allocated", "stock that packs by CPU and memory", map[string]any{
		"NodeResourcesFit": map[string]any{"scoringStrategy": map[string]any{
			"type":      "MostAllocated",
			"resources": []any{map[string]any{"name": "cpu", "weight": 1}, map[string]any{"name": "memory", "weight": 1}},
		}},
	}),
	shippedRecipe("berth", "berth-scheduler as installed", "berth-scheduler", ""),
	shippedRecipe("berth-no-gpu", "berth-scheduler without GPUAware", "berth-scheduler", "GPUAware"),
	shippedRecipe("berth-no-cost", "berth-scheduler without CostOptimized", "berth-scheduler", "CostOptimized"),
	shippedRecipe("berth-no-gangs", "berth-scheduler without Coscheduling", "berth-scheduler", "Coscheduling"),
	shippedRecipe("gpu-aware", "gpu-aware-scheduler as installed", "gpu-aware-scheduler", ""),
}

func stockRecipe(name, description string, args map[string]any) recipe {
	return recipe{name: name, description: description, profile: stockProfile, config: func() ([]byte, error) {
		profile := map[string]any{"schedulerName": stockProfile}
		var pluginConfig []any
		for _, plugin := range slices.Sorted(maps.Keys(args)) {
			pluginConfig = append(pluginConfig, map[string]any{"name": plugin, "args": args[plugin]})
		}
		if pluginConfig != nil {
			profile["pluginConfig"] = pluginConfig
		}
		return marshalConfig(map[string]any{
			"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": []any{profile},
		})
	}}
}

// shippedRecipe is the shipped configuration with all its profiles, and without a plugin if one is named.
func shippedRecipe(name, description, profile, without string) recipe {
	config := func() ([]byte, error) {
		text, err := manifests.Files.ReadFile(shippedConfig)
		if err != nil || without == "" {
			return text, err
		}
		return removePlugin(text, without)
	}
	return recipe{name, description, profile, config, rig.InstalledGates}
}

// contenderNames are the names that --contenders takes.
func contenderNames() []string {
	names := make([]string, len(recipes))
	for i := range recipes {
		names[i] = recipes[i].name
	}
	return names
}

// makeContenders makes the named contenders, and those of configuration files given as FILE=PROFILE.
func makeContenders(names, files []string) ([]contender, error) {
	var list []contender
	for _, name := range names {
		i := slices.IndexFunc(recipes, func(r recipe) bool { return r.name == name })
		if i < 0 {
			return nil, fmt.Errorf("--contenders: %q is unknown; want some of %s", name, strings.Join(contenderNames(), ", "))
		}
		config, err := recipes[i].config()
		if err != nil {
			return nil, fmt.Errorf("making the configuration of contender %s: %w", name, err)
		}
		list = append(list, contender{name, recipes[i].profile, config, recipes[i].gates})
	}
	for _, text := range files {
		c, err := fileContender(text)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	for i := range list {
		if slices.ContainsFunc(list[:i], func(c contender) bool { return c.name == list[i].name }) {
			return nil, fmt.Errorf("contender %s is named twice", list[i].name)
		}
	}
	return list, nil
}

func fileContender(text string) (contender, error) {
	path, profile, ok := strings.Cut(text, "=")
	if !ok || path == "" || profile == "" {
		return contender{}, fmt.Errorf("--config: %q is not allowed; want FILE=PROFILE", text)
	}
	config, err := os.ReadFile(path)
	if err != nil {
		return contender{}, fmt.Errorf("reading a contender's configuration: %w", err)
	}
	known, err := profileNames(config)
	if err != nil {
		return contender{}, fmt.Errorf("--config: %s: %w", path, err)
	}
	if !slices.Contains(known, profile) {
		return contender{}, fmt.Errorf("--config: %s has no profile %q; it has %s", path, profile, strings.Join(known, ", "))
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) + ":" + profile
	return contender{name, profile, config, rig.InstalledGates}, nil
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
	return marshalConfig(document)
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

func marshalConfig(document map[string]any) ([]byte, error) {
	config, err := yaml.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("writing a scheduler configuration: %w", err)
	}
	return config, nil
}
