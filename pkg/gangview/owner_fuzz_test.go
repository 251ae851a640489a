package gangview

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/wellknown"
)

func FuzzGangOwner(f *testing.F) {
	f.Add("batch/v1", "Job", "train", "train", "3", "64", true)
	f.Add("v1", "", "", "\n", "g", "3", false)
	f.Add("apps/v1", "StatefulSet", "a.-b", "..", "-", "-9223372036854775809", false)
	f.Add("/", "MPIJob", "", "x", "", "", false)
	f.Fuzz(func(t *testing.T, apiVersion, kind, owner, label, part, size string, asks bool) {
		pod := ownedPod("p", apiVersion, kind, owner, map[string]string{jobSetNameLabel: label, replicatedJobNameLabel: part,
			leaderWorkerSetNameLabel:  label,
			leaderWorkerSetGroupLabel: part, leaderWorkerSetIndexLabel: part, trainingJobLabel: label,
			TrainingOperatorLabel: mpiOperator},
			map[string]string{LeaderWorkerSetSizeKey: size, volcanoName: label, kueueCount: size})
		pod.Labels[kueueGroup] = part
		if asks {
			pod.Annotations[wellknown.GangKey] = "true"
		}
		for _, per := range []JobSetPer{PerJobSet, PerReplicatedJob, PerReplica} {
			m, err := everything(per).GangOf(pod)
			switch {
			case err != nil:
				if m.ID != (gang.ID{}) || strings.ContainsAny(err.Error(), "\n\r") {
					t.Errorf("gang %v with the error %q", m.ID, err)
				}
			case m.ID.Name == "":
			case len(validation.IsDNS1123Subdomain(m.ID.Name)) > 0:
				t.Errorf("gang %q has a name that no PodGroup can have", m.ID.Name)
			case m.Minimum < 0 || m.Minimum > maxMinMember:
				t.Errorf("minimum %d", m.Minimum)
			}
		}
	})
}
