package coscheduling

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/gang"
)

// settings are the args as domain values.
type settings struct {
	timeout time.Duration
	backoff gang.Backoff
	// reserve is set if nodes are kept for the first gang that does not fit: at most maxPercent of them, for at most ttl.
	reserve    bool
	maxPercent int
	ttl        time.Duration
}

func settingsFrom(obj runtime.Object, profile string) (settings, error) {
	args, ok := obj.(*config.CoschedulingArgs)
	if !ok {
		return settings{}, fmt.Errorf("making %s: got args of type %T, want *config.CoschedulingArgs", Name, obj)
	}
	path := field.NewPath("profiles").Key(profile).Child("pluginConfig").Key(Name).Child("args")
	if err := config.ValidateCoschedulingArgs(path, args); err != nil {
		return settings{}, err
	}
	seconds := func(n *int32) time.Duration { return time.Duration(*n) * time.Second }
	s := settings{
		timeout: seconds(args.ScheduleTimeoutSeconds),
		backoff: gang.Backoff{Initial: seconds(args.RetryInitialSeconds), Max: seconds(args.RetryMaxSeconds)},
	}
	if r := args.Reservation; r != nil {
		s.reserve, s.maxPercent, s.ttl = true, int(*r.MaxNodesPercent), seconds(r.TTLSeconds)
	}
	return s, nil
}
