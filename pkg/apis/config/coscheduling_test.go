package config

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/assert"
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
			"args.reservation.maxNodesPercent: Invalid value: 101: want a whole number from 0 to 100"},
		{"a reservation that is off", CoschedulingArgs{Reservation: &GangReservation{MaxNodesPercent: ptr.To[int32](0)}}, ""},
		{"a reservation for no time", CoschedulingArgs{Reservation: &GangReservation{TTLSeconds: ptr.To[int32](-1)}},
			"args.reservation.ttlSeconds: Invalid value: -1: want a whole number from 1 to 604800"},
		{"work that does not count", CoschedulingArgs{Preemption: &Preemption{MaxUnsavedSeconds: ptr.To[int32](0)}}, ""},
		{"work of more than a month", CoschedulingArgs{Preemption: &Preemption{MaxUnsavedSeconds: ptr.To[int32](2592001)}},
			"args.preemption.maxUnsavedSeconds: Invalid value: 2592001: want a whole number from 0 to 2592000"},
		{"a restart that takes no time and less",
			CoschedulingArgs{Preemption: &Preemption{MaxRestartSeconds: ptr.To[int32](-1)}},
			"args.preemption.maxRestartSeconds: Invalid value: -1: want a whole number from 0 to 86400"},
		{"protected for more than a day", CoschedulingArgs{Preemption: &Preemption{MaxProtectSeconds: ptr.To[int32](86401)}},
			"args.preemption.maxProtectSeconds: Invalid value: 86401: want a whole number from 0 to 86400"},
		{"reservations for some namespaces", CoschedulingArgs{Reservation: &GangReservation{MinPriority: ptr.To[int32](-5),
			Namespaces: []GangReservationNamespace{{Name: "team-a"}, {Name: "team-b", MaxNodesPercent: ptr.To[int32](0)},
				{Name: "*", MaxNodesPercent: ptr.To[int32](50)}}}}, ""},
		{"a reservation for a namespace that cannot be",
			CoschedulingArgs{Reservation: &GangReservation{Namespaces: []GangReservationNamespace{{Name: "team-*"}}}},
			`args.reservation.namespaces[0].name: Invalid value: "team-*": want the name of a namespace, or "*"`},
		{"a reservation for a namespace without a name",
			CoschedulingArgs{Reservation: &GangReservation{Namespaces: []GangReservationNamespace{{}}}},
			`args.reservation.namespaces[0].name: Invalid value: "": want the name of a namespace, or "*"`},
		{"a reservation for a namespace twice",
			CoschedulingArgs{Reservation: &GangReservation{Namespaces: []GangReservationNamespace{{Name: "a"}, {Name: "a"}}}},
			`args.reservation.namespaces[1].name: Duplicate value: "a"`},
		{"more for a namespace than for all", CoschedulingArgs{Reservation: &GangReservation{
			Namespaces: []GangReservationNamespace{{Name: "a", MaxNodesPercent: ptr.To[int32](101)}}}},
			"args.reservation.namespaces[0].maxNodesPercent: Invalid value: 101: want a whole number from 0 to 100"},
		{"gangs of the controllers of a profile",
			CoschedulingArgs{GangOwners: &GangOwners{Profiles: []string{"gang-scheduler"}}}, ""},
		{"gangs of some kinds everywhere",
			CoschedulingArgs{GangOwners: &GangOwners{Kinds: []GangOwnerKind{"Job", "StatefulSet"}, Namespaces: []string{"*"}}},
			""},
		{"gangs of controllers nowhere", CoschedulingArgs{GangOwners: &GangOwners{}},
			`args.gangOwners: Required value: want profiles, namespaces or both; "*" stands for all`},
		{"an unknown kind", CoschedulingArgs{GangOwners: &GangOwners{Kinds: []GangOwnerKind{"Job", "VolcanoJob"},
			Profiles: []string{"a"}}},
			`args.gangOwners.kinds[1]: Unsupported value: "VolcanoJob": supported values: "Job", "JobSet", "LeaderWorkerSet", "MPIJob", ` +
				`"PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "MXJob", "JAXJob", "RayCluster", "StatefulSet"`},
		{"a kind twice", CoschedulingArgs{GangOwners: &GangOwners{Kinds: []GangOwnerKind{"Job", "Job"},
			Profiles: []string{"a"}}},
			`args.gangOwners.kinds[1]: Duplicate value: "Job"`},
		{"all namespaces and one more", CoschedulingArgs{GangOwners: &GangOwners{Namespaces: []string{"a", "*"}}},
			`args.gangOwners.namespaces[1]: Invalid value: "*": stands for all and has to stand alone`},
		{"a namespace that cannot be", CoschedulingArgs{GangOwners: &GangOwners{Namespaces: []string{"A_b"}}},
			`args.gangOwners.namespaces[0]: Invalid value: "A_b": want the name of a namespace`},
		{"a profile without a name", CoschedulingArgs{GangOwners: &GangOwners{Profiles: []string{""}}},
			`args.gangOwners.profiles[0]: Invalid value: "": want the schedulerName of a profile`},
		{"a JobSet in other parts",
			CoschedulingArgs{GangOwners: &GangOwners{Profiles: []string{"a"}, JobSetPer: ptr.To[GangJobSetPer]("Pod")}},
			`args.gangOwners.jobSetPer: Unsupported value: "Pod": supported values: "JobSet", "ReplicatedJob", "Replica"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.args.SetDefaults()
			message := ""
			if err := tc.args.Validate(field.NewPath("args")); err != nil {
				message = err.Error()
			}
			if message != tc.err {
				t.Errorf("error %q, want %q", message, tc.err)
			}
		})
	}
}

func TestDefaultGangOwners(t *testing.T) {
	t.Parallel()
	args := CoschedulingArgs{GangOwners: &GangOwners{Profiles: []string{"a"}}}
	args.SetDefaults()
	want := &GangOwners{Profiles: []string{"a"}, JobSetPer: ptr.To(GangPerJobSet),
		Kinds: []GangOwnerKind{"Job", "JobSet", "LeaderWorkerSet",
			"MPIJob", "PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "MXJob", "JAXJob", "RayCluster"}}
	assert.Equal(t, "defaults", want, args.GangOwners)
	off := CoschedulingArgs{}
	off.SetDefaults()
	if off.GangOwners != nil {
		t.Errorf("without gangOwners: got %+v", off.GangOwners)
	}
}
