package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/component-base/featuregate"

	"berth.dev/berth/pkg/cluster/access"
	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/process/rights"
)

// flagCompletions are the completions of flags by name, for commands that have none of their own.
func flagCompletions() map[string]cobra.CompletionFunc {
	byName := map[string]cobra.CompletionFunc{
		"profile":                 completeProfiles,
		"feature-gates":           completeGates,
		"scheduler-feature-gates": completeGates,
		"runtime-config": completeList([]string{"api/all=true", "api/alpha=true", "api/beta=true",
			"scheduling.k8s.io/v1beta1=true"}),
		"account": cobra.FixedCompletions([]string{rights.OwnAccount, "kube-system/berth-scheduler"},
			cobra.ShellCompDirectiveNoFileComp),
		"context": access.Complete(
			func(c *clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.Contexts)) }),
		"cluster": access.Complete(
			func(c *clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.Clusters)) }),
		"user": access.Complete(
			func(c *clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.AuthInfos)) }),
		"fail-if": completeConditions,
		"mode": cobra.FixedCompletions([]string{string(replayed.ArrivalOrder), string(replayed.VirtualTime)},
			cobra.ShellCompDirectiveNoFileComp),
		"dir":  cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		"html": cobra.FixedCompletions([]string{"html"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	for _, name := range []string{"a", "b", "config", "dump", "file", "jobs", "kube-apiserver", "kubeconfig", "nodes",
		"prices"} {
		byName[name] = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	}
	for _, name := range []string{"filename", "scheduler-config"} {
		byName[name] = completeManifests
	}
	return byName
}

// completeProfiles offers the profiles of the configuration in the flags, or of the shipped one.
func completeProfiles(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var given string
	for _, flag := range []string{"scheduler-config", "config", "b"} {
		if f := cmd.Flags().Lookup(flag); f != nil && f.Value.String() != "" && given == "" {
			given = f.Value.String()
		}
	}
	silenceLogs()
	configuration, err := loadConfiguration(given)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return profileNames(configuration), cobra.ShellCompDirectiveNoFileComp
}

// completeGates offers each feature gate with the opposite of its default.
func completeGates(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	var gates []string
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		value := "=true"
		if spec.Default {
			value = "=false"
		}
		// AllAlpha and AllBeta are groups of gates.
		if spec.PreRelease != featuregate.GA && !strings.HasPrefix(string(name), "All") {
			gates = append(gates, string(name)+value)
		}
	}
	return completeList(gates)(cmd, args, typed)
}

// completeList completes the last element of a list that is separated by commas.
func completeList(elements []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		var lists []string
		for _, element := range elements {
			lists = append(lists, before+element)
		}
		slices.Sort(lists)
		return lists, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// completeManifests offers YAML and JSON files.
func completeManifests(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}
