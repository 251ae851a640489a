// Package config holds the typed arguments of Berth's plugins, as they stand under pluginConfig in a
// KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1).
//
// Each <Plugin>Args has one Go type for both the v1 and the internal version of that group: optional fields are
// pointers, the scheduler's own machinery decodes them strictly and applies the defaults of this package before any
// plugin sees them. A plugin turns its args into domain values once, in New, and refuses bad ones with the field's
// path.
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

// Checked returns the args that a plugin is made with in a profile. It is an error if they are of another type or not
// valid.
func Checked[T Args](obj runtime.Object, profile, plugin string) (T, error) {
	args, ok := obj.(T)
	if !ok {
		return args, fmt.Errorf("reading args of profile %s: want %sArgs, got %T", profile, plugin, obj)
	}
	return args, args.Validate(field.NewPath("profiles").Key(profile).Child("pluginConfig").Key(plugin).Child("args"))
}

// The scheduler keeps two schemes: the global one that decodes the configuration file, and a private one, built on
// first use from the two shared builders, that converts plugin args. The types have to be in both, so they are put on
// the builders and, because the global scheme was filled before this init ran, added to it by hand.
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
