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

// The pods of a JobSet that form one gang.
const (
	// GangPerJobSet makes one gang of all pods of a JobSet. They have to be created together: a JobSet whose replicated
	// jobs wait for each other never starts.
	GangPerJobSet GangJobSetPer = "JobSet"
	// GangPerReplicatedJob makes a gang of each entry of a JobSet's replicatedJobs, with all its replicas.
	GangPerReplicatedJob GangJobSetPer = "ReplicatedJob"
	// GangPerReplica makes a gang of each Job that a JobSet creates.
	GangPerReplica GangJobSetPer = "Replica"
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
	var errs field.ErrorList
	for i, kind := range o.Kinds {
		errs = append(errs, validateEnum(path.Child("kinds").Index(i), kind, GangOwnerKinds())...)
	}
	errs = append(errs, validateUnique(path.Child("kinds"), o.Kinds)...)
	if len(o.Profiles)+len(o.Namespaces) == 0 {
		errs = append(errs, field.Required(path,
			fmt.Sprintf("want profiles, namespaces or both; %q stands for all", anyName)))
	}
	for i, name := range o.Profiles {
		if name == "" {
			errs = append(errs, field.Invalid(path.Child("profiles").Index(i), name, "want the schedulerName of a profile"))
		}
	}
	errs = append(errs, validateUnique(path.Child("profiles"), o.Profiles)...)
	for i, name := range o.Namespaces {
		if name != anyName && len(validation.IsDNS1123Label(name)) > 0 {
			errs = append(errs, field.Invalid(path.Child("namespaces").Index(i), name, "want the name of a namespace"))
		}
	}
	errs = append(errs, validateUnique(path.Child("namespaces"), o.Namespaces)...)
	return append(errs, validateEnum(path.Child("jobSetPer"), *o.JobSetPer,
		[]GangJobSetPer{GangPerJobSet, GangPerReplicatedJob, GangPerReplica})...)
}

// validateUnique returns errors for duplicates, and for "*" beside other entries.
func validateUnique[T ~string](path *field.Path, entries []T) field.ErrorList {
	var errs field.ErrorList
	for i, entry := range entries {
		switch {
		case slices.Contains(entries[:i], entry):
			errs = append(errs, field.Duplicate(path.Index(i), entry))
		case entry == anyName && len(entries) > 1:
			errs = append(errs, field.Invalid(path.Index(i), entry, "stands for all and has to stand alone"))
		}
	}
	return errs
}

// AllNames reports whether a list of profiles or namespaces stands for all of them.
func AllNames(names []string) bool { return len(names) == 0 || slices.Contains(names, anyName) }
