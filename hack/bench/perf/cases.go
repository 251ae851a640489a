package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/manifests"
)

// contender is a scheduler that is measured.
type contender string

const (
	stock contender = "stock"
	berth contender = "berth"
	// shippedProfile is the profile of the installed configuration that is measured.
	shippedProfile = "berth-scheduler"
	// upstreamProfile is the profile that upstream's pods name.
	upstreamProfile = "default-scheduler"
)

// perfCase is a workload of a case that upstream defines.
type perfCase struct {
	name string
	// topic is the folder of the case. The paths of its templates are relative to it.
	topic string
	// document is upstream's definition with this workload alone.
	document map[string]any
	// threshold is how many pods a second upstream's own machines have to reach, 0 where it does not say.
	threshold float64
}

// readCases reads the cases whose names, FOLDER/CASE/WORKLOAD, are a pattern or match it as path.Match does. A folder
// may be in another one, and the name of a workload may hold slashes.
func readCases(upstream, pattern string) ([]*perfCase, error) {
	var matching []*perfCase
	err := filepath.WalkDir(upstream, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(file) != "performance-config.yaml" {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var all []map[string]any
		if err := yaml.Unmarshal(text, &all); err != nil {
			return fmt.Errorf("parsing %s: %w", file, err)
		}
		topic := filepath.Dir(file)
		folder, err := filepath.Rel(upstream, topic)
		if err != nil {
			return err
		}
		for _, document := range all {
			workloads, _ := document["workloads"].([]any)
			for _, w := range workloads {
				workload, _ := w.(map[string]any)
				name := fmt.Sprintf("%s/%v/%v", filepath.ToSlash(folder), document["name"], workload["name"])
				is, err := path.Match(pattern, name)
				if err != nil {
					return err
				}
				if is || name == pattern {
					matching = append(matching, caseOf(name, topic, document, workload))
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for %q among upstream's cases: %w", pattern, err)
	}
	if len(matching) == 0 {
		return nil, fmt.Errorf("no case of upstream is or matches %q; want FOLDER/CASE/WORKLOAD", pattern)
	}
	return matching, nil
}

// caseOf takes one workload of a case out of upstream's definition.
func caseOf(name, topic string, document, workload map[string]any) *perfCase {
	threshold, _ := workload["threshold"].(float64)
	// The thresholds are those of the machines on which upstream measures, and the harness runs what has this label.
	one := maps.Clone(workload)
	delete(one, "threshold")
	one["labels"] = []any{"performance"}
	alone := maps.Clone(document)
	alone["workloads"] = []any{one}
	return &perfCase{name, topic, alone, threshold}
}

// file is what the harness reads: the case, and for berth the path of its scheduler configuration and the feature gates
// with which it is installed.
func (c *perfCase) file(of contender, config string) ([]byte, error) {
	document := maps.Clone(c.document)
	if of == berth {
		if document["schedulerConfigPath"] != nil {
			return nil, errors.New("the case has a scheduler configuration of its own, which only stock can be measured with")
		}
		document["schedulerConfigPath"] = config
		gates := map[string]any{}
		if own, ok := document["featureGates"].(map[string]any); ok {
			for gate, on := range own {
				gates[gate] = on
			}
		}
		for _, gate := range rig.InstalledGates {
			name, value, _ := strings.Cut(gate, "=")
			gates[name] = value == "true"
		}
		document["featureGates"] = gates
	}
	text, err := yaml.Marshal([]any{document})
	if err != nil {
		return nil, fmt.Errorf("writing the case: %w", err)
	}
	return text, nil
}

// berthConfig is the installed scheduler's configuration with the measured profile alone, under the name that
// upstream's pods have.
func berthConfig() ([]byte, error) {
	installed, err := manifests.Files.ReadFile("base/scheduler-config.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the installed configuration: %w", err)
	}
	document := map[string]any{}
	if err := yaml.Unmarshal(installed, &document); err != nil {
		return nil, fmt.Errorf("parsing the installed configuration: %w", err)
	}
	profiles, _ := document["profiles"].([]any)
	at := slices.IndexFunc(profiles, func(p any) bool {
		profile, _ := p.(map[string]any)
		return profile["schedulerName"] == shippedProfile
	})
	if at < 0 {
		return nil, fmt.Errorf("the installed configuration has no profile %s", shippedProfile)
	}
	profile := profiles[at].(map[string]any)
	profile["schedulerName"] = upstreamProfile
	document["profiles"] = []any{profile}
	text, err := yaml.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	return text, nil
}
