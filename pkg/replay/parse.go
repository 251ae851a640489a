package replay

import (
	"fmt"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"

	"berth.dev/berth/manifests"
)

// shippedPath is where the configuration of the second scheduler is among the manifests.
const shippedPath = "base/scheduler-config.yaml"

// ShippedConfiguration is the one that is installed with Berth: all its profiles.
func ShippedConfiguration() (*Configuration, error) {
	data, err := manifests.Files.ReadFile(shippedPath)
	if err != nil {
		return nil, fmt.Errorf("reading the shipped configuration: %w", err)
	}
	return ParseConfiguration("manifests/"+shippedPath, data)
}

// ParseConfiguration is LoadConfiguration for a file that has been read; name is what errors call it.
func ParseConfiguration(name string, data []byte) (*Configuration, error) {
	obj, gvk, err := scheme.Codecs.UniversalDecoder().Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", name, oneLine(err))
	}
	component, ok := obj.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("%s: this is a %s, not a KubeSchedulerConfiguration", name, gvk.Kind)
	}
	component.APIVersion = gvk.GroupVersion().String()
	if err := validation.ValidateKubeSchedulerConfiguration(component); err != nil {
		return nil, fmt.Errorf("%s: %s", name, oneLine(err))
	}
	return &Configuration{Name: name, Component: component}, nil
}
