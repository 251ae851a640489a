package config

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// +kubebuilder:object:root=true

// CoschedulingArgs are the arguments of the Coscheduling plugin. They must be the same in each profile, because all
// profiles share one queue.
type CoschedulingArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Longest time, in seconds, that members of a gang may hold their nodes while the rest of it is being reserved. The
	// `scheduleTimeoutSeconds` of a PodGroup overrides it. From 1 to 900, default 60.
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`

	// Pause, in seconds, after a gang did not fit for the second time in a row. It doubles with each further time;
	// after the first time there is none. From 1 to 3600, default 1.
	RetryInitialSeconds *int32 `json:"retryInitialSeconds,omitempty"`

	// Longest pause, in seconds, between two attempts while the cluster changes. From `retryInitialSeconds` to 3600,
	// default 10.
	RetryMaxSeconds *int32 `json:"retryMaxSeconds,omitempty"`

	// How long, in seconds, the capacity of a member that failed or was deleted is kept for its replacement once the
	// gang has started, against pods of the gang's priority or lower. From 0 (not at all) to 3600, default 30.
	RecoverySeconds *int32 `json:"recoverySeconds,omitempty"`

	// Keeps nodes for gangs that do not fit, one gang at a time, so that a stream of smaller work cannot starve them.
	// On by default; `maxNodesPercent: 0` turns it off.
	Reservation *GangReservation `json:"reservation,omitempty"`

	// Makes gangs of the pods of some controllers without a change to their pod templates. By default, pods are in a
	// gang only if they have a label of one or the annotation `berth.dev/gang`.
	GangOwners *GangOwners `json:"gangOwners,omitempty"`

	// Limits what counts when victims are chosen among pods of one priority.
	Preemption *Preemption `json:"preemption,omitempty"`

	// Orders the queue by classes of pods, their deadlines and how long they have waited. By default, it is ordered by
	// priority and age alone.
	SLA *QueueSLA `json:"sla,omitempty"`
}

// GangReservation keeps nodes that a gang needs from other pods of its priority or lower, until it starts. Pods with
// the annotation `berth.dev/backfill: allow` may use them meanwhile, and are evicted as soon as the gang can start.
type GangReservation struct {
	// Largest part of all nodes, in percent, that may be kept. A gang that needs more gets no reservation. From 0 (no
	// reservations) to 100, default 100 while it is known when the gang starts, otherwise 50.
	MaxNodesPercent *int32 `json:"maxNodesPercent,omitempty"`
	// How long, in seconds, a gang must have waited before nodes are kept for it. From 0 to 86400, default 15.
	AfterSeconds *int32 `json:"afterSeconds,omitempty"`
	// How long, in seconds, nodes are kept without progress: after the gang was to start or, if that is not known,
	// while no pod ends that it waits for. Then the next gang has its turn, and this one rests for the same time, and
	// twice as long after each further turn without a start. From 1 to 604800 (a week), default 3600.
	TTLSeconds *int32 `json:"ttlSeconds,omitempty"`
	// Lowest priority of gangs that may have a reservation. Default any priority.
	MinPriority *int32 `json:"minPriority,omitempty"`
	// Namespaces whose gangs may have a reservation, each with its own limit. Default all namespaces, each up to
	// `maxNodesPercent`.
	Namespaces []GangReservationNamespace `json:"namespaces,omitempty"`
}

// GangReservationNamespace lets gangs of a namespace have reservations.
type GangReservationNamespace struct {
	// Name of the namespace, or `*` for those that are not listed. Required.
	Name string `json:"name"`
	// Largest part of all nodes, in percent, that may be kept for a gang of the namespace. From 0 (none) to the
	// reservation's `maxNodesPercent`, which is the default.
	MaxNodesPercent *int32 `json:"maxNodesPercent,omitempty"`
}

// Preemption limits what counts when victims are chosen among pods of one priority: the work that an eviction loses,
// and what pods may ask for.
type Preemption struct {
	// Longest time of work, in seconds, that counts as lost with a pod, however long ago it was saved. With 0, work
	// does not count, and the fewest pods are evicted. From 0 to 2592000 (30 days), default 86400.
	MaxUnsavedSeconds *int32 `json:"maxUnsavedSeconds,omitempty"`
	// Longest time, in seconds, that a pod may declare in `berth.dev/restart-cost` to need to come back. From 0 to
	// 86400, default 1800.
	MaxRestartSeconds *int32 `json:"maxRestartSeconds,omitempty"`
	// Longest time after its start, in seconds, for which a pod may ask in `berth.dev/protect-for` to be evicted after
	// all others of its priority. From 0 to 86400, default 1800.
	MaxProtectSeconds *int32 `json:"maxProtectSeconds,omitempty"`
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
	setDefault(&args.Reservation, GangReservation{})
	setDefault(&args.Reservation.AfterSeconds, 15)
	setDefault(&args.Reservation.TTLSeconds, 3600)
	setDefault(&args.Preemption, Preemption{})
	setDefault(&args.Preemption.MaxUnsavedSeconds, 24*3600)
	setDefault(&args.Preemption.MaxRestartSeconds, 1800)
	setDefault(&args.Preemption.MaxProtectSeconds, 1800)
	if o := args.GangOwners; o != nil {
		setDefaultsGangOwners(o)
	}
	if q := args.SLA; q != nil {
		setDefaultsQueueSLA(q)
	}
}

// Validate checks defaulted args that stand at path in the configuration.
func (args *CoschedulingArgs) Validate(path *field.Path) error {
	preemption := path.Child("preemption")
	errs := slices.Concat(
		validateRange(path.Child("scheduleTimeoutSeconds"), args.ScheduleTimeoutSeconds, 1, 900),
		validateRange(path.Child("retryInitialSeconds"), args.RetryInitialSeconds, 1, 3600),
		validateRange(path.Child("retryMaxSeconds"), args.RetryMaxSeconds, *args.RetryInitialSeconds, 3600),
		validateRange(path.Child("recoverySeconds"), args.RecoverySeconds, 0, 3600),
		validateGangReservation(path.Child("reservation"), args.Reservation),
		validateRange(preemption.Child("maxUnsavedSeconds"), args.Preemption.MaxUnsavedSeconds, 0, 30*24*3600),
		validateRange(preemption.Child("maxRestartSeconds"), args.Preemption.MaxRestartSeconds, 0, 24*3600),
		validateRange(preemption.Child("maxProtectSeconds"), args.Preemption.MaxProtectSeconds, 0, 24*3600),
	)
	if o := args.GangOwners; o != nil {
		errs = append(errs, validateGangOwners(path.Child("gangOwners"), o)...)
	}
	if q := args.SLA; q != nil {
		errs = append(errs, validateQueueSLA(path.Child("sla"), q)...)
	}
	return errs.ToAggregate()
}
