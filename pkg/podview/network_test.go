package podview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNodeTellsItsDomainByTheFirstLabelThatItHas(t *testing.T) {
	t.Parallel()
	levels := NetworkLevels{{v1.LabelHostname}, {"a/new-leaf", "leaf"}, {v1.LabelTopologyZone}}
	for _, test := range []struct {
		name      string
		labels    map[string]string
		path      []string
		narrowest string
	}{
		{"no labels", nil, []string{"", "", ""}, ""},
		{"all of them",
			map[string]string{v1.LabelHostname: "n", "leaf": "old", "a/new-leaf": "new", v1.LabelTopologyZone: "z"},
			[]string{"z", "new", "n"}, "new-leaf=new"},
		{"an empty one is none", map[string]string{"leaf": "old", "a/new-leaf": ""}, []string{"", "old", ""}, "leaf=old"},
		{"a wide level", map[string]string{v1.LabelTopologyZone: "z"}, []string{"z", "", ""}, "zone=z"},
		{"only the name of the node", map[string]string{v1.LabelHostname: "n"}, []string{"", "", "n"}, ""},
	} {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: test.labels}}
		if diff := cmp.Diff(test.path, levels.Path(node)); diff != "" {
			t.Errorf("%s: path (-want +got):\n%s", test.name, diff)
		}
		if got := levels.Narrowest(node).String(); got != test.narrowest {
			t.Errorf("%s: the narrowest domain is %q, want %q", test.name, got, test.narrowest)
		}
	}
}

func TestDomainsOfSeveralLevelsHaveNoCommonOne(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		domains []Domain
		want    string
	}{
		"no domains":         {nil, ""},
		"unknown ones":       {[]Domain{{}, {}}, ""},
		"one level":          {[]Domain{{}, {"a/rack", "1"}, {"a/rack", "2"}}, "rack"},
		"two labels, a name": {[]Domain{{"a/rack", "1"}, {"b/rack", "1"}}, "rack"},
		"two levels":         {[]Domain{{"a/rack", "1"}, {"a/zone", "1"}}, ""},
	} {
		if got := CommonLevel(tc.domains); got != tc.want {
			t.Errorf("%s: the level is %q, want %q", name, got, tc.want)
		}
	}
}
