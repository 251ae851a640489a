package coscheduling

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/hold"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/work"
)

// settings are the args as domain values.
type settings struct {
	timeout time.Duration
	backoff gang.Backoff
	// recovery is how long the room of a lost member is kept for its replacement; 0 is not at all.
	recovery time.Duration
	// owners says which pods are made gangs although nothing in them asks for it.
	owners *read.OwnerPolicy
	// patience is how long a gang has waited before capacity is kept for it, and ttl for how long that lasts without
	// progress; holders says to whom and how much.
	patience, ttl time.Duration
	holders       hold.Holders
	// limits bound what pods say of their work when victims are chosen.
	limits  work.Limits
	classes queueClasses
}

func settingsFrom(obj runtime.Object, profile string) (settings, error) {
	args, err := config.Checked[*config.CoschedulingArgs](obj, profile, Name)
	if err != nil {
		return settings{}, err
	}
	seconds := func(n *int32) time.Duration { return time.Duration(*n) * time.Second }
	s := settings{
		timeout: seconds(args.ScheduleTimeoutSeconds),
		backoff: gang.Backoff{Initial: seconds(args.RetryInitialSeconds), Max: seconds(args.RetryMaxSeconds)},
	}
	s.recovery, s.owners = seconds(args.RecoverySeconds), ownerPolicy(args.GangOwners)
	s.classes = queueClasses{order: args.SLA.Order()}
	e := args.Preemption
	s.limits = work.Limits{Unsaved: seconds(e.MaxUnsavedSeconds), Restart: seconds(e.MaxRestartSeconds),
		Protected: seconds(e.MaxProtectSeconds)}
	r := args.Reservation
	s.holders, s.ttl, s.patience = hold.HoldersFrom(r), seconds(r.TTLSeconds), seconds(r.AfterSeconds)
	return s, nil
}

// ownerPolicy returns the policy that defaulted and validated args, which may be nil, state.
func ownerPolicy(args *config.GangOwners) *read.OwnerPolicy {
	p := &read.OwnerPolicy{Kinds: map[string]bool{}, CorePlansNative: members.CorePlansNative()}
	if args == nil {
		return p
	}
	p.JobSetPer = read.JobSetPer(*args.JobSetPer)
	for _, kind := range args.Kinds {
		p.Kinds[string(kind)] = true
	}
	p.Profiles, p.Namespaces = nameSet(args.Profiles), nameSet(args.Namespaces)
	return p
}

// nameSet is nil for a list that stands for all names.
func nameSet(names []string) map[string]bool {
	if config.AllNames(names) {
		return nil
	}
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}
