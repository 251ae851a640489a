package read

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/wellknown"
)

func TestTopologyOf(t *testing.T) {
	t.Parallel()
	type annotations = map[string]string
	const required, preferred = wellknown.TopologyRequiredKey, wellknown.TopologyPreferredKey
	for _, tc := range []struct {
		name string
		// group is nil if there is no PodGroup.
		group, pod annotations
		want       Topology
		err        string
	}{
		{"nothing is said", nil, nil, Topology{}, ""},
		{"the pod speaks where there is no PodGroup", nil, annotations{required: "zone", preferred: "rack"},
			Topology{Required: []string{"zone"}, Preferred: []string{"rack"}}, ""},
		{"the PodGroup speaks first, for each of the two", annotations{required: "block"},
			annotations{required: "zone", preferred: "rack"},
			Topology{Required: []string{"block"}, Preferred: []string{"rack"}}, ""},
		{"the order is kept, and spaces around keys do not matter",
			annotations{required: " topology.kubernetes.io/zone , block ", preferred: "rack"}, nil,
			Topology{Required: []string{"topology.kubernetes.io/zone", "block"}, Preferred: []string{"rack"}}, ""},
		{"of a list only what is not required is preferred", annotations{required: "zone,block", preferred: "block,rack"},
			nil, Topology{Required: []string{"zone", "block"}, Preferred: []string{"rack"}}, ""},
		{"eight levels", annotations{required: "a,b,c,d", preferred: "e,f,g,h"}, nil,
			Topology{Required: []string{"a", "b", "c", "d"}, Preferred: []string{"e", "f", "g", "h"}}, ""},

		{"an empty value is no label key", nil, annotations{required: ""}, Topology{},
			`pod annotation berth.dev/topology-required: "" is not the key of a node label, such as topology.kubernetes.io/rack`},
		{"a list with an empty item is refused", annotations{preferred: "block,,rack"}, nil, Topology{},
			`PodGroup g annotation berth.dev/topology-preferred: "block,,rack" is not a comma-separated list of node label keys, widest level first: item 2 is not the key of a label`},
		{"a key that comes twice is refused", nil, annotations{preferred: "rack,block, rack"}, Topology{},
			`pod annotation berth.dev/topology-preferred: "rack,block, rack" is not a list of different node label keys: item 3 repeats item 1`},
		{"nine levels are refused", nil, annotations{preferred: "a,b,c,d,e,f,g,h,i"}, Topology{},
			`pod annotation berth.dev/topology-preferred: "a,b,c,d,e,f,g,h,i" is not a list of at most 8 node label keys`},
		{"nine levels in two lists are refused", annotations{required: "a,b,c,d"}, annotations{preferred: "e,f,g,h,i"},
			Topology{},
			`pod annotation berth.dev/topology-preferred: "e,f,g,h,i" is not allowed together with the 4 levels of berth.dev/topology-required: a gang has at most 8 levels`},
	} {
		var pg *schedulingv1alpha1.PodGroup
		if tc.group != nil {
			pg = &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "g", Annotations: tc.group}}
		}
		got, err := TopologyOf(pg, st.MakePod().Annotations(tc.pod).Obj())
		message := ""
		if err != nil {
			message = err.Error()
		}
		if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: topology (-want +got):\n%s", tc.name, diff)
		}
		if diff := cmp.Diff(tc.err, message); diff != "" {
			t.Errorf("%s: error (-want +got):\n%s", tc.name, diff)
		}
	}
}
