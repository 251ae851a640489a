package sla

import (
	"slices"
	"time"
)

// Class is a service level that pods may have.
type Class struct {
	Name string
	// PriorityClasses are those whose pods may be of the class. If empty, any pod may be that names the class.
	PriorityClasses []string
	// Deadline is the time from its arrival in which a pod of the class should start.
	Deadline time.Duration
	// EarliestOwn is how long after its arrival a pod of the class is due at the earliest by its own deadline, 0 if those
	// of pods do not count.
	EarliestOwn time.Duration
	// AgeFrom is the priority from which pods of the class age, nil for their own.
	AgeFrom *int32
	// Timeout is the wait after which a pod of the class is reported, 0 for never.
	Timeout time.Duration
}

// Admits reports whether pods of the PriorityClass may be of the class.
func (c *Class) Admits(priorityClass string) bool {
	return len(c.PriorityClasses) == 0 || slices.Contains(c.PriorityClasses, priorityClass)
}

// Ageing says how waiting makes up for a lower priority.
type Ageing struct {
	// PerHour is by how much the priority of a pod rises with each hour that it waits.
	PerHour int32
	// UpTo is the highest priority that ages. Pods above it come first whatever the others have waited.
	UpTo int32
}

// Order is the order of a queue with classes. It never changes.
type Order struct {
	classes []Class
	ageing  *Ageing
	// longest is the longest deadline of any class, which pods without one have.
	longest time.Duration
}

// NewOrder returns the order by classes. Without ageing, a pod of higher priority always comes first.
func NewOrder(classes []Class, ageing *Ageing) *Order {
	o := &Order{classes: classes, ageing: ageing}
	for i := range classes {
		o.longest = max(o.longest, classes[i].Deadline)
	}
	return o
}

// Names returns the names of the classes.
func (o *Order) Names() []string {
	names := make([]string, len(o.classes))
	for i := range o.classes {
		names[i] = o.classes[i].Name
	}
	return names
}

// Timed returns the names of the classes that have a timeout; a nil order has none.
func (o *Order) Timed() []string {
	if o == nil {
		return nil
	}
	var names []string
	for i := range o.classes {
		if o.classes[i].Timeout > 0 {
			names = append(names, o.classes[i].Name)
		}
	}
	return names
}

// Class returns the class of that name, nil if there is none or it does not admit pods of the PriorityClass.
func (o *Order) Class(name, priorityClass string) *Class {
	for i := range o.classes {
		if c := &o.classes[i]; c.Name == name && c.Admits(priorityClass) {
			return c
		}
	}
	return nil
}

// ClassFor returns the first class that names the PriorityClass, for pods that name no class; nil if there is none.
func (o *Order) ClassFor(priorityClass string) *Class {
	for i := range o.classes {
		if slices.Contains(o.classes[i].PriorityClasses, priorityClass) {
			return &o.classes[i]
		}
	}
	return nil
}

// Place is what a pod brings to its place in the queue besides its priority and its arrival.
type Place struct {
	// Ages is set if waiting makes up for the pod's priority. Pods that age are ordered by when they are due alone,
	// after all pods that do not.
	Ages bool
	// Wait is the time from its arrival to when the pod is due.
	Wait time.Duration
}

// longestOwn and longestWait keep sums of times from overflowing. longestWait is reached only by priorities that would
// catch up in centuries; pods that reach it are ordered by their arrival.
const (
	longestOwn  = 80 * 365 * 24 * time.Hour
	longestWait = 200 * 365 * 24 * time.Hour
)

// Place returns the place of a pod. The class may be nil.
//
// Ageing has to be one rate for all: a priority P that rises by r an hour is P + r·(now − arrival), and the order of
// two such lines is the same at all times only if r is. Then it is the order of arrival − P/r, an instant that does not
// move, which is what Wait expresses: (UpTo − P)/r, as a pod of priority UpTo that arrives so much later is due at the
// same time. For the same reason all pods up to UpTo age, or none: with strict priority among some of them the order
// would have circles.
//
// A pod may say by when after its arrival it has to start, nil if it does not. That counts where its class lets it, and
// no sooner than its class lets it: otherwise all pods would have to start at once.
//
// A pod without a deadline has the longest one of any class. Without any at all it would wait for as long as pods with
// deadlines keep coming.
func (o *Order) Place(priority int32, class *Class, own *time.Duration) Place {
	p := Place{Wait: o.longest}
	from := priority
	if class != nil {
		if class.Deadline > 0 {
			p.Wait = class.Deadline
		}
		if own != nil && class.EarliestOwn > 0 {
			p.Wait = max(class.EarliestOwn, min(*own, longestOwn))
		}
		if class.AgeFrom != nil {
			from = *class.AgeFrom
		}
	}
	if o.ageing == nil || priority > o.ageing.UpTo {
		return p
	}
	p.Ages = true
	hours := float64(int64(o.ageing.UpTo)-int64(from)) / float64(o.ageing.PerHour)
	p.Wait += time.Duration(max(-longestWait.Hours(), min(hours, longestWait.Hours())) * float64(time.Hour))
	return p
}
