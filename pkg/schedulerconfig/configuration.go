// Package schedulerconfig reads a KubeSchedulerConfiguration: from a file, from memory, the one that is shipped with
// Berth, or that of the default scheduler. It also answers what the tool asks of one.
//
// cmd/scheduler, the tool and replays call it. It never writes a configuration, and starts nothing.
package schedulerconfig

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"

	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/plugins/gpuaware"
)

// Stock names the configuration of the default scheduler, without a file.
const Stock = "stock"

// Configuration is a scheduler configuration and its name.
type Configuration struct {
	// Name is the file's path, or Stock.
	Name      string
	Component *schedulerapi.KubeSchedulerConfiguration
}

// Load reads, defaults and validates a KubeSchedulerConfiguration as kube-scheduler does at its start. An error is one
// line that begins with the name of the file.
func Load(nameOrPath string) (*Configuration, error) {
	if nameOrPath == Stock {
		component, err := latest.Default()
		if err != nil {
			return nil, fmt.Errorf("making the default configuration: %w", err)
		}
		return &Configuration{Name: Stock, Component: component}, nil
	}
	file, err := os.Open(nameOrPath)
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler configuration: %w", err)
	}
	defer file.Close()
	data, err := ReadFile(file, nameOrPath)
	if err != nil {
		return nil, err
	}
	return Parse(nameOrPath, data)
}

// maxFileBytes bounds what is read of a file: a configuration with prices for thousands of instance types has a few
// MiB.
const maxFileBytes = 16 << 20

// ReadFile returns the content of a configuration's file, unless it is too large for one.
func ReadFile(r io.Reader, path string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		err = fmt.Errorf("%s is larger than %d MiB", path, maxFileBytes>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler configuration: %w", err)
	}
	return data, nil
}

// ErrInvalid is matched by the errors of Invalid.
var ErrInvalid = errors.New("invalid scheduler configuration")

// invalidError matches ErrInvalid, but has its own text.
type invalidError struct{ error }

// Is makes every invalidError match ErrInvalid.
func (e invalidError) Is(target error) bool { return target == ErrInvalid }

// Invalid returns an ErrInvalid in one line that begins with the name of the configuration.
func (c *Configuration) Invalid(err error) error {
	return invalidError{fmt.Errorf("%s: %s", c.Name, oneLine(err))}
}

// RefuseExtenders returns an error if the configuration has extenders: a scheduler on a virtual clock cannot wait for
// their answers.
func (c *Configuration) RefuseExtenders() error {
	if len(c.Component.Extenders) == 0 {
		return nil
	}
	return c.Invalid(fmt.Errorf(
		"extenders: %s would have to be asked, which a virtual clock cannot wait for; use a configuration without extenders",
		c.Component.Extenders[0].URLPrefix))
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// preferredProfile is the profile with all plugins in the shipped configuration.
const preferredProfile = "berth-scheduler"

// Profile returns the wanted profile, an error if there is none of that name. If wanted is empty, it is
// berth-scheduler, or else the first.
func (c *Configuration) Profile(wanted string) (string, error) {
	names := make([]string, 0, len(c.Component.Profiles))
	for _, p := range c.Component.Profiles {
		names = append(names, p.SchedulerName)
	}
	switch {
	case wanted == "" && slices.Contains(names, preferredProfile):
		return preferredProfile, nil
	case wanted == "" && len(names) > 0:
		return names[0], nil
	case slices.Contains(names, wanted):
		return wanted, nil
	default:
		return "", fmt.Errorf("%s: there is no profile %q; it has %s", c.Name, wanted, strings.Join(names, ", "))
	}
}

// SharesGPUs reports whether a profile has a plugin that places shares of a GPU. Without one, a pod that asks for a
// share can only be given a whole GPU.
func (c *Configuration) SharesGPUs(profile string) bool { return c.enables(profile, gpuaware.Name) }

// KnowsGangs reports whether a profile has a plugin that starts the pods of a gang together. Without one, each pod is
// placed on its own.
func (c *Configuration) KnowsGangs(profile string) bool { return c.enables(profile, coscheduling.Name) }

func (c *Configuration) enables(profile, name string) bool {
	for _, p := range c.Component.Profiles {
		if p.SchedulerName != profile || p.Plugins == nil {
			continue
		}
		for _, set := range []schedulerapi.PluginSet{p.Plugins.MultiPoint, p.Plugins.Filter} {
			for _, plugin := range set.Enabled {
				if plugin.Name == name {
					return true
				}
			}
		}
	}
	return false
}
