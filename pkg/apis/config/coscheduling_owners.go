package config

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// GangOwners says which controllers' pods are made gangs, and where. A pod that has a label of a gang is in that gang.
// How many pods must start together is read from the controller's object and follows it; the scheduler needs the right
// to get, list and watch these objects.
type GangOwners struct {
	// Kinds of controllers whose pods form gangs: `Job`, `JobSet`, `LeaderWorkerSet`, `MPIJob`, `PyTorchJob`, `TFJob`,
	// `XGBoostJob`, `PaddleJob`, `MXJob`, `JAXJob`, `RayCluster`, `StatefulSet`. Default all but `StatefulSet`, whose
	// pods are usually services.
	Kinds []GangOwnerKind `json:"kinds,omitempty"`

	// Names of the profiles whose pods are covered; `*` stands for all. Default any profile. At least one of `profiles`
	// and `namespaces` is required; where both are given, a pod must match both.
	Profiles []string `json:"profiles,omitempty"`

	// Namespaces whose pods are covered; `*` stands for all. Default any namespace.
	Namespaces []string `json:"namespaces,omitempty"`

	// Pods of a JobSet that form one gang. `JobSet`: all of them, and they must be created together. `ReplicatedJob`:
	// those of one entry of `replicatedJobs`, with all its replicas. `Replica`: those of one Job. Default `JobSet`.
	JobSetPer *GangJobSetPer `json:"jobSetPer,omitempty"`
}

// GangOwnerKind is a kind of object whose pods may form a gang.
type GangOwnerKind string

// GangOwnerKinds are the kinds that GangOwners may name.
func GangOwnerKinds() []GangOwnerKind {
	return []GangOwnerKind{"Job", "JobSet", "LeaderWorkerSet", "MPIJob", "PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob",
		"MXJob", "JAXJob", "RayCluster", gangStatefulSet}
}

const gangStatefulSet GangOwnerKind = "StatefulSet"

// GangJobSetPer says which pods of a JobSet form one gang.
type GangJobSetPer string

// The pods of a JobSet that form one gang, as GangOwners describes.
const (
	GangPerJobSet        GangJobSetPer = "JobSet"
	GangPerReplicatedJob GangJobSetPer = "ReplicatedJob"
	GangPerReplica       GangJobSetPer = "Replica"
)

// anyName stands for all profiles or namespaces.
const anyName = "*"

func setDefaultsGangOwners(o *GangOwners) {
	if len(o.Kinds) == 0 {
		o.Kinds = slices.DeleteFunc(GangOwnerKinds(), func(k GangOwnerKind) bool { return k == gangStatefulSet })
	}
	setDefault(&o.JobSetPer, GangPerJobSet)
}

func validateGangOwners(path *field.Path, o *GangOwners) field.ErrorList {
	errs := validateEach(path.Child("kinds"), o.Kinds, func(GangOwnerKind) []string { return nil })
	for i, kind := range o.Kinds {
		errs = append(errs, validateEnum(path.Child("kinds").Index(i), kind, GangOwnerKinds())...)
	}
	if len(o.Profiles)+len(o.Namespaces) == 0 {
		errs = append(errs, field.Required(path,
			fmt.Sprintf("want profiles, namespaces or both; %q stands for all", anyName)))
	}
	return slices.Concat(errs,
		validateNames(path.Child("profiles"), o.Profiles, "want the schedulerName of a profile",
			func(name string) bool { return name == "" }),
		validateNames(path.Child("namespaces"), o.Namespaces, "want the name of a namespace",
			func(name string) bool { return len(validation.IsDNS1123Label(name)) > 0 }),
		validateEnum(path.Child("jobSetPer"), *o.JobSetPer,
			[]GangJobSetPer{GangPerJobSet, GangPerReplicatedJob, GangPerReplica}))
}

// validateNames returns errors for wrong names, for duplicates, and for "*" beside other names.
func validateNames(path *field.Path, names []string, want string, wrong func(string) bool) field.ErrorList {
	return validateEach(path, names, func(name string) []string {
		switch {
		case name == anyName && len(names) > 1:
			return []string{"stands for all and has to stand alone"}
		case name != anyName && wrong(name):
			return []string{want}
		}
		return nil
	})
}

// AllNames reports whether a list of profiles or namespaces stands for all of them.
func AllNames(names []string) bool { return len(names) == 0 || slices.Contains(names, anyName) }
