package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/process"
)

func TestTheDomainOfAGangIsWhereMostOfItsPodsAre(t *testing.T) {
	t.Parallel()
	x := New(&process.Profiles{})
	for name, labels := range map[string]map[string]string{
		"a": {"zone": "z1", "rack": "r1"}, "b": {"zone": "z1", "rack": "r1"}, "c": {"zone": "z1", "rack": "r2"},
		"d": {"zone": "z1"},
	} {
		x.Feed.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	for name, tc := range map[string]struct {
		held   map[string]int
		labels []string
		want   []string
	}{
		"without required labels there is none": {map[string]int{"a": 1}, nil, nil},
		"one node":                              {map[string]int{"c": 1}, []string{"rack"}, []string{"r2"}},
		"several levels": {map[string]int{"a": 1}, []string{"zone", "rack"},
			[]string{"z1", "r1"}},
		"a rack with more pods on two nodes": {map[string]int{"a": 1, "b": 1, "c": 1}, []string{"rack"},
			[]string{"r1"}},
		"a rack with more pods on one node": {map[string]int{"a": 1, "b": 1, "c": 3}, []string{"rack"},
			[]string{"r2"}},
		"as many pods in two racks": {map[string]int{"a": 1, "b": 1, "c": 2}, []string{"rack"}, nil},
		"as many in two racks, and more in one of them": {map[string]int{"a": 2, "b": 1, "c": 2}, []string{"rack"},
			[]string{"r1"}},
		"a node without the label": {map[string]int{"d": 2, "a": 1}, []string{"rack"}, []string{""}},
		"a node that is gone":      {map[string]int{"gone": 2, "a": 1}, []string{"rack"}, []string{"r1"}},
		"no node that is known":    {map[string]int{"gone": 2}, []string{"rack"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 20 { // in the random orders of the map
				if diff := cmp.Diff(tc.want, x.Cluster.Domain(tc.held, tc.labels)); diff != "" {
					t.Fatalf("domain (-want +got):\n%s", diff)
				}
			}
		})
	}
}
