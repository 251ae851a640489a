package config

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

func TestValidateCoschedulingArgs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		args CoschedulingArgs
		err  string
	}{
		{"defaults are valid", CoschedulingArgs{}, ""},
		{"a reservation with its defaults is valid", CoschedulingArgs{Reservation: &GangReservation{}}, ""},
		{"no time at all", CoschedulingArgs{ScheduleTimeoutSeconds: ptr.To[int32](0)},
			"args.scheduleTimeoutSeconds: Invalid value: 0: want a whole number from 1 to 900"},
		{"more than the scheduler allows", CoschedulingArgs{ScheduleTimeoutSeconds: ptr.To[int32](901)},
			"args.scheduleTimeoutSeconds: Invalid value: 901: want a whole number from 1 to 900"},
		{"a longest pause below the first", CoschedulingArgs{RetryInitialSeconds: ptr.To[int32](20)},
			"args.retryMaxSeconds: Invalid value: 10: want a whole number from 20 to 3600"},
		{"all nodes and more", CoschedulingArgs{Reservation: &GangReservation{MaxNodesPercent: ptr.To[int32](101)}},
			"args.reservation.maxNodesPercent: Invalid value: 101: want a whole number from 1 to 100"},
		{"a reservation for no time", CoschedulingArgs{Reservation: &GangReservation{TTLSeconds: ptr.To[int32](-1)}},
			"args.reservation.ttlSeconds: Invalid value: -1: want a whole number from 1 to 604800"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			SetDefaultsCoschedulingArgs(&tc.args)
			message := ""
			if err := ValidateCoschedulingArgs(field.NewPath("args"), &tc.args); err != nil {
				message = err.Error()
			}
			if message != tc.err {
				t.Errorf("error %q, want %q", message, tc.err)
			}
		})
	}
}
