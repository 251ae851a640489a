package podview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNodeTellsItsDomainByTheFirstLabelThatItHas(t *testing.T) {
	t.Parallel()
	levels := NetworkLevels{{Labels: []string{"new-leaf", "leaf"}}, {Labels: []string{v1.LabelTopologyZone}}}
	for _, test := range []struct {
		name   string
		labels map[string]string
		want   []string
	}{
		{"no labels", nil, []string{"", ""}},
		{"all of them", map[string]string{"leaf": "old", "new-leaf": "new", v1.LabelTopologyZone: "z"}, []string{"z", "new"}},
		{"an empty one is none", map[string]string{"leaf": "old", "new-leaf": ""}, []string{"", "old"}},
	} {
		if diff := cmp.Diff(test.want,
			levels.Path(&v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: test.labels}})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
