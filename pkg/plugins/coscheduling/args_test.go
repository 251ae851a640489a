package coscheduling

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/gang/read"
)

func TestArgsMayNameTheKindsThatCanBeRead(t *testing.T) {
	t.Parallel()
	var can []string
	for _, name := range read.OwnerKindNames() {
		// The pods of these are too common: each has to ask.
		if name != "ReplicaSet" && name != "ReplicationController" {
			can = append(can, name)
		}
	}
	var may []string
	for _, kind := range config.GangOwnerKinds() {
		may = append(may, string(kind))
	}
	slices.Sort(can)
	slices.Sort(may)
	if diff := cmp.Diff(can, may); diff != "" {
		t.Errorf("kinds (-that can be read +that args may name):\n%s", diff)
	}
}

func TestOwnerPolicy(t *testing.T) {
	t.Parallel()
	if p := ownerPolicy(nil); len(p.Kinds) > 0 || p.CorePlansNative {
		t.Errorf("without gangOwners: got %+v", p)
	}
	for _, tc := range []struct {
		name string
		args config.GangOwners
		want read.OwnerPolicy
	}{
		{"some profiles", config.GangOwners{Profiles: []string{"a", "b"}},
			read.OwnerPolicy{Profiles: map[string]bool{"a": true, "b": true}, JobSetPer: read.PerJobSet}},
		{"all namespaces", config.GangOwners{Namespaces: []string{"*"}}, read.OwnerPolicy{JobSetPer: read.PerJobSet}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			args := config.CoschedulingArgs{GangOwners: &tc.args}
			tc.args.Kinds = []config.GangOwnerKind{"Job"}
			args.SetDefaults()
			tc.want.Kinds = map[string]bool{"Job": true}
			if diff := cmp.Diff(&tc.want, ownerPolicy(args.GangOwners)); diff != "" {
				t.Errorf("policy (-want +got):\n%s", diff)
			}
		})
	}
}
