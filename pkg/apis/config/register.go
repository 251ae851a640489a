// Package config holds the typed arguments of Berth's plugins, as they stand under pluginConfig in a
// KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1).
//
// Each <Plugin>Args has one Go type for both the v1 and the internal version of that group: optional fields are
// pointers, the scheduler's own machinery decodes them strictly and applies the defaults of this package before any
// plugin sees them. A plugin turns its args into domain values once, in New, and refuses bad ones with the field's
// path through the Validate functions of this package.
//
// +kubebuilder:object:generate=true
package config

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
)

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
	s.AddKnownTypes(schedulerconfig.SchemeGroupVersion, argsTypes()...)
	return nil
}

func addVersionedTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(kubeschedulerv1.SchemeGroupVersion, argsTypes()...)
	s.AddTypeDefaultingFunc(&GPUAwareArgs{}, func(o any) { SetDefaultsGPUAwareArgs(o.(*GPUAwareArgs)) })
	s.AddTypeDefaultingFunc(&CostOptimizedArgs{}, func(o any) { SetDefaultsCostOptimizedArgs(o.(*CostOptimizedArgs)) })
	s.AddTypeDefaultingFunc(&CoschedulingArgs{}, func(o any) { SetDefaultsCoschedulingArgs(o.(*CoschedulingArgs)) })
	s.AddTypeDefaultingFunc(&NetworkTopologyArgs{},
		func(o any) { SetDefaultsNetworkTopologyArgs(o.(*NetworkTopologyArgs)) })
	s.AddTypeDefaultingFunc(&SLAAwareArgs{}, func(o any) { SetDefaultsSLAAwareArgs(o.(*SLAAwareArgs)) })
	s.AddTypeDefaultingFunc(&IPReservationArgs{}, func(o any) { SetDefaultsIPReservationArgs(o.(*IPReservationArgs)) })
	return nil
}

func argsTypes() []runtime.Object {
	return []runtime.Object{&GPUAwareArgs{}, &CostOptimizedArgs{}, &CoschedulingArgs{}, &NetworkTopologyArgs{},
		&SLAAwareArgs{}, &IPReservationArgs{}}
}
