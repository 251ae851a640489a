package config

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/sla"
)

// QueueSLA orders the queue by service levels. It changes which pods are tried first, and nothing else: preemption goes
// by priority. At least one of `classes` and `ageing` is required.
type QueueSLA struct {
	// Service levels, at most 64. A pod names its class in the label or the annotation `berth.dev/sla-class`; one that
	// names none is of the first class that lists its PriorityClass. Default none.
	Classes []SLAClass `json:"classes,omitempty"`
	// Lets waiting make up for a lower priority. By default, a pod of higher priority always comes first.
	Ageing *QueueAgeing `json:"ageing,omitempty"`
}

// SLAClass is a service level.
type SLAClass struct {
	// DNS label by which pods name the class. Required.
	Name string `json:"name"`
	// Names of the PriorityClasses whose pods are of the class; only their pods may name it. By default, any pod may
	// name the class, and no pod is of it without naming it.
	PriorityClasses []string `json:"priorityClasses,omitempty"`
	// Time from its creation, in seconds, within which a pod should start. Of pods of equal priority, the one whose
	// time ends first comes first. From 1 to 2592000 (30 days), default the longest of any class, which pods without a
	// class have, too.
	DeadlineSeconds *int32 `json:"deadlineSeconds,omitempty"`
	// Lets pods of the class have deadlines of their own: a pod with the annotations `berth.dev/deadline` and
	// `berth.dev/run-time` is due when it must start to end in time, but not before this many seconds after its
	// creation. From 1 to 2592000. By default, deadlines of pods do not count.
	EarliestOwnDeadlineSeconds *int32 `json:"earliestOwnDeadlineSeconds,omitempty"`
	// How long, in seconds, a pod may be pending before it gets the warning event `WaitTimeout`, once. From 1 to
	// 2592000, default never.
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// Priority from which pods of the class age, in place of their own. It needs `ageing` and `priorityClasses`:
	// otherwise, any pod could choose it. From -2000000000 to 1000000000, default the pod's own priority.
	AgeFromPriority *int32 `json:"ageFromPriority,omitempty"`
}

// QueueAgeing raises the priority that pods have in the queue for as long as they wait.
type QueueAgeing struct {
	// Points of priority that an hour of waiting is worth: the difference of two PriorityClasses, divided by the hours
	// after which a pod of the lower one comes before new pods of the higher one. From 1 to 2000000000, required.
	PriorityPerHour *int32 `json:"priorityPerHour,omitempty"`
	// Highest priority that ages. Pods above it come first, however long the others have waited. From -2000000000 to
	// 1000000000; the default, 1000000000, is the highest that users can give, so that only pods that are critical to
	// the system are above it.
	UpToPriority *int32 `json:"upToPriority,omitempty"`
}

const (
	// maxSLASeconds is 30 days.
	maxSLASeconds = 30 * 24 * 3600
	maxSLAClasses = 64
	// highestUserPriority is the highest priority that a PriorityClass may have that is not the system's.
	highestUserPriority = 1_000_000_000
	maxPerHour          = 2 * highestUserPriority
)

func setDefaultsQueueSLA(q *QueueSLA) {
	if q.Ageing != nil {
		setDefault(&q.Ageing.UpToPriority, highestUserPriority)
	}
}

func validateQueueSLA(path *field.Path, q *QueueSLA) field.ErrorList {
	var errs field.ErrorList
	if len(q.Classes) == 0 && q.Ageing == nil {
		errs = append(errs, field.Required(path, "want classes, ageing or both"))
	}
	if n := len(q.Classes); n > maxSLAClasses {
		errs = append(errs, field.TooMany(path.Child("classes"), n, maxSLAClasses))
	}
	for i := range q.Classes {
		at := path.Child("classes").Index(i)
		errs = append(errs, validateSLAClass(at, &q.Classes[i], q.Ageing != nil)...)
		same := func(other SLAClass) bool { return other.Name == q.Classes[i].Name }
		if slices.ContainsFunc(q.Classes[:i], same) {
			errs = append(errs, field.Duplicate(at.Child("name"), q.Classes[i].Name))
		}
	}
	if a := q.Ageing; a != nil {
		at := path.Child("ageing")
		if a.PriorityPerHour == nil {
			errs = append(errs, field.Required(at.Child("priorityPerHour"),
				fmt.Sprintf("want a whole number from 1 to %d", maxPerHour)))
		}
		errs = append(errs, validateRange(at.Child("priorityPerHour"), a.PriorityPerHour, 1, maxPerHour)...)
		errs = append(errs, validateRange(at.Child("upToPriority"), a.UpToPriority, -maxPerHour, highestUserPriority)...)
	}
	return errs
}

func validateSLAClass(path *field.Path, c *SLAClass, ages bool) field.ErrorList {
	ageFrom := path.Child("ageFromPriority")
	errs := slices.Concat(
		validateRange(path.Child("deadlineSeconds"), c.DeadlineSeconds, 1, maxSLASeconds),
		validateRange(path.Child("earliestOwnDeadlineSeconds"), c.EarliestOwnDeadlineSeconds, 1, maxSLASeconds),
		validateRange(path.Child("timeoutSeconds"), c.TimeoutSeconds, 1, maxSLASeconds),
		validateRange(ageFrom, c.AgeFromPriority, -maxPerHour, highestUserPriority),
	)
	if len(validation.IsDNS1123Label(c.Name)) > 0 {
		errs = append(errs, field.Invalid(path.Child("name"), c.Name, "want a DNS label, such as interactive"))
	}
	for i, name := range c.PriorityClasses {
		if at := path.Child("priorityClasses").Index(i); len(validation.IsDNS1123Subdomain(name)) > 0 {
			errs = append(errs, field.Invalid(at, name, "want the name of a PriorityClass"))
		} else if slices.Contains(c.PriorityClasses[:i], name) {
			errs = append(errs, field.Duplicate(at, name))
		}
	}
	if c.AgeFromPriority != nil && !ages {
		errs = append(errs, field.Forbidden(ageFrom, "has no effect without ageing"))
	}
	if c.AgeFromPriority != nil && len(c.PriorityClasses) == 0 {
		errs = append(errs, field.Forbidden(ageFrom, "needs priorityClasses, or any pod could take the class"))
	}
	return errs
}

// Order returns the order for valid args, nil for the order by priority and time alone.
func (q *QueueSLA) Order() *sla.Order {
	if q == nil {
		return nil
	}
	seconds := func(n *int32) time.Duration { return time.Duration(*cmp.Or(n, new(int32))) * time.Second }
	classes := make([]sla.Class, len(q.Classes))
	for i, c := range q.Classes {
		classes[i] = sla.Class{Name: c.Name, PriorityClasses: c.PriorityClasses, AgeFrom: c.AgeFromPriority,
			Deadline: seconds(c.DeadlineSeconds), Timeout: seconds(c.TimeoutSeconds),
			EarliestOwn: seconds(c.EarliestOwnDeadlineSeconds)}
	}
	var ageing *sla.Ageing
	if a := q.Ageing; a != nil {
		ageing = &sla.Ageing{PerHour: *a.PriorityPerHour, UpTo: *a.UpToPriority}
	}
	return sla.NewOrder(classes, ageing)
}
