package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"berth.dev/berth/hack/bench/live"
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

var contenders = []contender{stock, berth}

// Describe is for the flag that chooses among the contenders.
func (c contender) Describe() (name, description string) {
	return string(c), map[contender]string{
		stock: "kube-scheduler's default profile", berth: shippedProfile + " as it is installed",
	}[c]
}

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

// readCases reads the cases whose names, FOLDER/CASE/WORKLOAD, match a pattern of path.Match.
func readCases(upstream, pattern string) ([]*perfCase, error) {
	if !strings.ContainsAny(pattern, `*?[`) {
		c, err := readCase(upstream, pattern)
		return []*perfCase{c}, err
	}
	files, err := filepath.Glob(filepath.Join(upstream, "*", "performance-config.yaml"))
	if err != nil {
		return nil, fmt.Errorf("looking for cases: %w", err)
	}
	var matching []*perfCase
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the cases: %w", err)
		}
		var all []struct {
			Name      string                  `json:"name"`
			Workloads []struct{ Name string } `json:"workloads"`
		}
		if err := yaml.Unmarshal(text, &all); err != nil {
			return nil, fmt.Errorf("parsing %s: %w", file, err)
		}
		for _, c := range all {
			for _, workload := range c.Workloads {
				name := path.Join(filepath.Base(filepath.Dir(file)), c.Name, workload.Name)
				if is, err := path.Match(pattern, name); err != nil {
					return nil, fmt.Errorf("%q is not allowed: %w", pattern, err)
				} else if !is {
					continue
				}
				one, err := readCase(upstream, name)
				if err != nil {
					return nil, err
				}
				matching = append(matching, one)
			}
		}
	}
	if len(matching) == 0 {
		return nil, fmt.Errorf("no case matches %q", pattern)
	}
	return matching, nil
}

// readCase reads a case by its name, FOLDER/CASE/WORKLOAD. A folder may be in another one, and the name of a workload
// may hold slashes.
func readCase(upstream, name string) (*perfCase, error) {
	parts := strings.Split(name, "/")
	if len(parts) < 3 || !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%q is not allowed; want FOLDER/CASE/WORKLOAD", name)
	}
	for n := 1; n < len(parts)-1; n++ {
		folder := filepath.Join(parts[:n]...)
		topic := filepath.Join(upstream, folder)
		text, err := os.ReadFile(filepath.Join(topic, "performance-config.yaml"))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, fmt.Errorf("reading the cases of %s: %w", folder, err)
		}
		c, err := pick(text, parts[n], strings.Join(parts[n+1:], "/"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
		c.name, c.topic = name, topic
		return c, nil
	}
	return nil, fmt.Errorf("%q is unknown: %s has no cases", name, parts[0])
}

// pick takes one workload of a case out of upstream's definitions.
func pick(text []byte, name, workload string) (*perfCase, error) {
	var all []map[string]any
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("parsing the cases: %w", err)
	}
	document, err := find(all, name)
	if err != nil {
		return nil, err
	}
	var workloads []map[string]any
	list, _ := document["workloads"].([]any)
	for _, w := range list {
		if w, ok := w.(map[string]any); ok {
			workloads = append(workloads, w)
		}
	}
	one, err := find(workloads, workload)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", name, err)
	}
	threshold, _ := one["threshold"].(float64)
	// The thresholds are those of the machines on which upstream measures, and the harness runs what has this label.
	delete(one, "threshold")
	one["labels"] = []any{"performance"}
	document["workloads"] = []any{one}
	return &perfCase{document: document, threshold: threshold}, nil
}

// find returns the object of a name.
func find(objects []map[string]any, name string) (map[string]any, error) {
	var names []string
	for _, o := range objects {
		if o["name"] == name {
			return o, nil
		}
		if n, ok := o["name"].(string); ok {
			names = append(names, n)
		}
	}
	return nil, fmt.Errorf("%q is unknown; want one of %s", name, strings.Join(names, ", "))
}

// file is what the harness reads: the case, and for berth the path of its scheduler configuration and the feature gates
// with which it is installed.
func (c *perfCase) file(of contender, config string) ([]byte, error) {
	document := map[string]any{}
	for key, value := range c.document {
		document[key] = value
	}
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
		for _, gate := range live.InstalledGates {
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
	text := live.Installed(string(berth), shippedProfile).Config
	document := map[string]any{}
	if err := yaml.Unmarshal(text, &document); err != nil {
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
