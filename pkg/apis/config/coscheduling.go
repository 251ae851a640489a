package config

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// +kubebuilder:object:root=true

// CoschedulingArgs tunes the Coscheduling plugin. The plugin keeps one state for all profiles of a process, so that
// profiles with different args share what the first of them says about retries.
type CoschedulingArgs struct {
	metav1.TypeMeta `json:",inline"`

	// ScheduleTimeoutSeconds is how long members of a gang may hold their nodes while the rest of it is being reserved,
	// for gangs that do not say so themselves. From 1 to 900, default 60.
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`

	// RetryInitialSeconds is the pause after a gang did not fit for the second time in a row, which doubles with every
	// further time; after the first there is none. From 1, default 1.
	RetryInitialSeconds *int32 `json:"retryInitialSeconds,omitempty"`

	// RetryMaxSeconds is the longest pause between two attempts while the cluster changes. From retryInitialSeconds to
	// 3600, default 10.
	RetryMaxSeconds *int32 `json:"retryMaxSeconds,omitempty"`

	// RecoverySeconds is how long the room of a member of a started gang that has failed or was deleted is kept for its
	// replacement, against pods of the gang's priority or less. From 0 (not at all) to 3600, default 30.
	RecoverySeconds *int32 `json:"recoverySeconds,omitempty"`

	// Reservation keeps room for gangs that do not fit, one gang at a time, so that a stream of smaller work cannot starve
	// them. If absent, it has its defaults. To switch it off, set maxNodesPercent to 0.
	Reservation *GangReservation `json:"reservation,omitempty"`

	// GangOwners makes gangs of the pods of some controllers without a word in their pod templates. Absent, pods are in a
	// gang only if they carry a label of one or the annotation berth.dev/gang.
	GangOwners *GangOwners `json:"gangOwners,omitempty"`

	// Preemption says which of several pods of one priority go. Absent, it has its defaults.
	Preemption *Preemption `json:"preemption,omitempty"`

	// SLA orders the queue by classes of pods, their deadlines and how long they have waited. Absent, it is ordered by
	// priority and time alone.
	SLA *QueueSLA `json:"sla,omitempty"`
}

// GangReservation keeps nodes that a gang needs from other pods of its priority or less, until it starts. Pods that
// carry berth.dev/backfill: allow may use them meanwhile, and are evicted as soon as the gang can start.
type GangReservation struct {
	// MaxNodesPercent is the largest part of all nodes that may be kept. A gang that needs more gets no reservation; 0 is
	// for none at all. From 0 to 100, default 100 while it is known when the gang starts, else 50.
	MaxNodesPercent *int32 `json:"maxNodesPercent,omitempty"`
	// AfterSeconds is how long a gang has to have waited before anything is kept for it. From 0 to 86400, default 15.
	AfterSeconds *int32 `json:"afterSeconds,omitempty"`
	// TTLSeconds is how long nodes are kept without progress, that is, after the gang was to start or, if that is not
	// known, while no pod ends that it waits for. Then the next gang has its turn, and the first one rests for the same
	// time, twice as long after each further turn without a start. From 1 to 604800, default 3600.
	TTLSeconds *int32 `json:"ttlSeconds,omitempty"`
	// MinPriority is the least priority of gangs that may have a reservation. Absent: any priority.
	MinPriority *int32 `json:"minPriority,omitempty"`
	// Namespaces lists the namespaces whose gangs may have a reservation, each with its own limit; the name "*" stands for
	// those that are not listed. Absent: all namespaces, each up to maxNodesPercent.
	Namespaces []GangReservationNamespace `json:"namespaces,omitempty"`
}

// GangReservationNamespace lets gangs of a namespace have reservations.
type GangReservationNamespace struct {
	// Name is the name of the namespace, or "*".
	Name string `json:"name"`
	// MaxNodesPercent is the largest part of all nodes that may be kept for a gang of the namespace. From 0 (none) to the
	// reservation's maxNodesPercent, which is the default.
	MaxNodesPercent *int32 `json:"maxNodesPercent,omitempty"`
}

// AnyNamespace stands for the namespaces that are not listed.
const AnyNamespace = "*"

func validateGangReservation(path *field.Path, r *GangReservation) field.ErrorList {
	errs := slices.Concat(
		validateRange(path.Child("maxNodesPercent"), r.MaxNodesPercent, 0, 100),
		validateRange(path.Child("afterSeconds"), r.AfterSeconds, 0, 86400),
		validateRange(path.Child("ttlSeconds"), r.TTLSeconds, 1, 604800),
	)
	seen := map[string]bool{}
	for i, n := range r.Namespaces {
		at := path.Child("namespaces").Index(i)
		switch {
		case n.Name != AnyNamespace && len(validation.IsDNS1123Label(n.Name)) > 0:
			errs = append(errs, field.Invalid(at.Child("name"), n.Name, `want the name of a namespace, or "*"`))
		case seen[n.Name]:
			errs = append(errs, field.Duplicate(at.Child("name"), n.Name))
		}
		seen[n.Name] = true
		errs = append(errs, validateRange(at.Child("maxNodesPercent"), n.MaxNodesPercent, 0,
			ptr.Deref(r.MaxNodesPercent, 100))...)
	}
	return errs
}

// SetDefaults fills the fields that were left out.
func (args *CoschedulingArgs) SetDefaults() {
	setDefault(&args.ScheduleTimeoutSeconds, 60)
	setDefault(&args.RetryInitialSeconds, 1)
	setDefault(&args.RetryMaxSeconds, 10)
	setDefault(&args.RecoverySeconds, 30)
	if args.Reservation == nil {
		args.Reservation = &GangReservation{}
	}
	setDefault(&args.Reservation.AfterSeconds, 15)
	setDefault(&args.Reservation.TTLSeconds, 3600)
	if args.Preemption == nil {
		args.Preemption = &Preemption{}
	}
	setDefaultsPreemption(args.Preemption)
	if o := args.GangOwners; o != nil {
		setDefaultsGangOwners(o)
	}
	if q := args.SLA; q != nil {
		setDefaultsQueueSLA(q)
	}
}

// Validate checks defaulted args that stand at path in the configuration.
func (args *CoschedulingArgs) Validate(path *field.Path) error {
	errs := slices.Concat(
		validateRange(path.Child("scheduleTimeoutSeconds"), args.ScheduleTimeoutSeconds, 1, 900),
		validateRange(path.Child("retryInitialSeconds"), args.RetryInitialSeconds, 1, 3600),
		validateRange(path.Child("retryMaxSeconds"), args.RetryMaxSeconds, *args.RetryInitialSeconds, 3600),
		validateRange(path.Child("recoverySeconds"), args.RecoverySeconds, 0, 3600),
		validateGangReservation(path.Child("reservation"), args.Reservation),
		validatePreemption(path.Child("preemption"), args.Preemption),
	)
	if o := args.GangOwners; o != nil {
		errs = append(errs, validateGangOwners(path.Child("gangOwners"), o)...)
	}
	if q := args.SLA; q != nil {
		errs = append(errs, validateQueueSLA(path.Child("sla"), q)...)
	}
	return errs.ToAggregate()
}
