package network

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

func TestGangsArePlannedByThePathsOfTheirProfile(t *testing.T) {
	t.Parallel()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	n := Of(factory, "a")
	if n.Places() != nil {
		t.Error("gangs are planned by paths before a plugin gives any")
	}
	n.Follow(Places{Path: func(*v1.Node) []string { return []string{"zone"} }})
	if Of(factory, "a").Places() == nil {
		t.Error("gangs are not planned by the paths that a plugin of the profile gave")
	}
	if Of(factory, "b").Places() != nil {
		t.Error("gangs are planned by the paths of another profile")
	}
}
