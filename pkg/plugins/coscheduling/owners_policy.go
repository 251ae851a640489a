package coscheduling

import (
	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/gangview"
)

// ownerPolicy returns the policy that defaulted and validated args state, or nil.
func ownerPolicy(args *config.GangOwners) *gangview.OwnerPolicy {
	if args == nil {
		return nil
	}
	p := &gangview.OwnerPolicy{Kinds: map[string]bool{}, JobSetPer: gangview.JobSetPer(*args.JobSetPer)}
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
