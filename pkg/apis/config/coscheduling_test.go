package config

import (
	"testing"

	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/assert"
)

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
