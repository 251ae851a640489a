package schedulerconfig

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/apis/config"
)

// shippedPath is where the configuration of the second scheduler is among the manifests.
const shippedPath = "base/scheduler-config.yaml"

// Shipped returns the configuration that is installed with Berth, with all its profiles.
func Shipped() (*Configuration, error) {
	data, err := manifests.Files.ReadFile(shippedPath)
	if err != nil {
		return nil, fmt.Errorf("reading the shipped configuration: %w", err)
	}
	return Parse("manifests/"+shippedPath, data)
}

// Renamed maps arguments of Coscheduling in kubernetes-sigs/scheduler-plugins to those of Berth with the same meaning.
var Renamed = map[string]string{
	"permitWaitingTimeSeconds": "scheduleTimeoutSeconds", "podGroupBackoffSeconds": "retryInitialSeconds",
}

// SayRenamed adds to an error about arguments in Renamed what to write instead.
func SayRenamed(err error) error {
	for _, former := range slices.Sorted(maps.Keys(Renamed)) {
		if strings.Contains(err.Error(), fmt.Sprintf("unknown field %q", former)) {
			err = fmt.Errorf("%w; instead of %s, Coscheduling has %s", err, former, Renamed[former])
		}
	}
	return err
}

// Parse is Load for a file that has been read. Errors begin with name.
func Parse(name string, data []byte) (*Configuration, error) {
	obj, gvk, err := scheme.Codecs.UniversalDecoder().Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", name, oneLine(SayRenamed(err)))
	}
	component, ok := obj.(*schedulerapi.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("%s: this is a %s, not a KubeSchedulerConfiguration", name, gvk.Kind)
	}
	component.APIVersion = gvk.GroupVersion().String()
	if err := Validate(component); err != nil {
		return nil, fmt.Errorf("%s: %s", name, oneLine(err))
	}
	return &Configuration{Name: name, Component: component}, nil
}

// WithoutSignals returns the configuration without the live metrics of its plugins, which a virtual clock cannot wait
// for, and the names of the plugins that had any.
func (c *Configuration) WithoutSignals() (*Configuration, []string) {
	out := &Configuration{Name: c.Name, Component: c.Component.DeepCopy()}
	var silenced []string
	for i := range out.Component.Profiles {
		for _, pc := range out.Component.Profiles[i].PluginConfig {
			args := reflect.Indirect(reflect.ValueOf(pc.Args))
			for f := 0; args.Kind() == reflect.Struct && f < args.NumField(); f++ {
				switch field := args.Field(f); field.Interface().(type) {
				case *config.GPUSignals, *config.PriceSignals, *config.SLOSignals:
					if !field.IsNil() {
						field.SetZero()
						silenced = append(silenced, pc.Name)
					}
				}
			}
		}
	}
	slices.Sort(silenced)
	return out, slices.Compact(silenced)
}

// WithoutExtenderFiles returns the configuration without the TLS files of its extenders, which are on the scheduler's
// machine only, and the paths of the fields that had any. It is for schedulers that call no extender.
func (c *Configuration) WithoutExtenderFiles() (*Configuration, []*field.Path) {
	out := &Configuration{Name: c.Name, Component: c.Component.DeepCopy()}
	var blanked []*field.Path
	for i := range out.Component.Extenders {
		tls := out.Component.Extenders[i].TLSConfig
		if tls == nil {
			continue
		}
		path := field.NewPath("extenders").Index(i).Child("tlsConfig")
		for _, f := range []struct {
			name string
			file *string
		}{{"caFile", &tls.CAFile}, {"certFile", &tls.CertFile}, {"keyFile", &tls.KeyFile}} {
			if *f.file != "" {
				*f.file = ""
				blanked = append(blanked, path.Child(f.name))
			}
		}
	}
	return out, blanked
}
