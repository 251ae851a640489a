package dryrun

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLevelsThatDivideNoNodesAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		all, want [][]string
	}{
		{"nodes without labels", [][]string{{"", ""}, {"", ""}}, nil},
		{"one rack of one zone", [][]string{{"z", "r"}, {"z", "r"}}, nil},
		{"two racks of one zone", [][]string{{"z", "r1"}, {"z", "r2"}}, [][]string{{"r1"}, {"r2"}}},
		{"racks that not all nodes tell", [][]string{{"z", ""}, {"z", "r2"}}, [][]string{{""}, {"r2"}}},
		{"racks of the same name in two zones", [][]string{{"z1", "r"}, {"z2", "r"}}, [][]string{{"z1"}, {"z2"}}},
		{"all levels", [][]string{{"z1", "r1"}, {"z2", "r2"}}, [][]string{{"z1", "r1"}, {"z2", "r2"}}},
		{"no levels", [][]string{{}, {}}, nil},
	} {
		if diff := cmp.Diff(test.want, dividing(test.all)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
