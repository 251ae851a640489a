// Package config has the arguments of Berth's plugins in the pluginConfig of a KubeSchedulerConfiguration, with their
// defaults and validation.
//
// Each <Plugin>Args is one Go type for both the v1 and the internal version of the group. kube-scheduler decodes it
// strictly and applies the defaults. A plugin validates its args and makes values of them once, in New; the tool does
// the same. The package never reads a file.
//
// +kubebuilder:object:generate=true
// +groupName=kubescheduler.config.k8s.io
package config

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
)

// Args are the arguments of a plugin.
//
// +kubebuilder:object:generate=false
type Args interface {
	runtime.Object
	// SetDefaults fills the fields that were left out.
	SetDefaults()
	// Validate checks defaulted args that stand at path in the configuration.
	Validate(path *field.Path) error
}

// Checked returns the args of a plugin in a profile. It is an error if they are of another type or invalid.
func Checked[T Args](obj runtime.Object, profile, plugin string) (T, error) {
	args, ok := obj.(T)
	if !ok {
		return args, fmt.Errorf("reading args of profile %s: want %sArgs, got %T", profile, plugin, obj)
	}
	return args, args.Validate(field.NewPath("profiles").Key(profile).Child("pluginConfig").Key(plugin).Child("args"))
}

// kube-scheduler has two schemes: a global one, which decodes the configuration file, and a private one for plugin
// args, which is built from the two shared builders on first use. The types must be in both: the builders get them for
// the private scheme, and the global one, which exists before this init runs, gets them directly.
func init() {
	schedulerconfig.SchemeBuilder.Register(addInternalTypes)
	kubeschedulerv1.SchemeBuilder.Register(addVersionedTypes)
	utilruntime.Must(addInternalTypes(scheme.Scheme))
	utilruntime.Must(addVersionedTypes(scheme.Scheme))
}

func addInternalTypes(s *runtime.Scheme) error {
	for _, args := range argsTypes() {
		s.AddKnownTypes(schedulerconfig.SchemeGroupVersion, args)
	}
	return nil
}

func addVersionedTypes(s *runtime.Scheme) error {
	for _, args := range argsTypes() {
		s.AddKnownTypes(kubeschedulerv1.SchemeGroupVersion, args)
		s.AddTypeDefaultingFunc(args, func(o any) { o.(Args).SetDefaults() })
	}
	return nil
}

func argsTypes() []Args {
	return []Args{&GPUAwareArgs{}, &CostOptimizedArgs{}, &CoschedulingArgs{}, &NetworkTopologyArgs{},
		&SLAAwareArgs{}, &IPReservationArgs{}}
}
