package process

import (
	"testing"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"berth.dev/berth/pkg/podview"
)

func TestGangsArePlannedByTheLevelsOfTheirProfile(t *testing.T) {
	t.Parallel()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	n := NetworksOf(factory)
	if n.Levels("a") != nil {
		t.Error("gangs are planned by levels before a plugin gives any")
	}
	n.Follow("a", podview.NetworkLevels{{"zone"}})
	if NetworksOf(factory).Levels("a") == nil {
		t.Error("gangs are not planned by the levels that a plugin of the profile gave")
	}
	if n.Levels("b") != nil {
		t.Error("gangs are planned by the levels of another profile")
	}
}
