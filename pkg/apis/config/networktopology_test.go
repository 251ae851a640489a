package config

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestNetworkTopologyArgs(t *testing.T) {
	t.Parallel()
	level := func(name string, microseconds int64, labels ...string) NetworkLevel {
		return NetworkLevel{Name: name, Labels: labels, NetworkDistance: NetworkDistance{Microseconds: microseconds}}
	}
	for _, test := range []struct {
		name string
		args NetworkTopologyArgs
		bad  []string
	}{
		{name: "the defaults"},
		{name: "a site's own levels", args: NetworkTopologyArgs{Levels: []NetworkLevel{level("rack", 10, "site/rack"),
			level("hall", 10, "site/hall")}}},
		{name: "no traffic in gangs", args: NetworkTopologyArgs{GangGiBPerHour: new(int64(0))}},
		{name: "an app label", args: NetworkTopologyArgs{AppLabel: new("app.kubernetes.io/part-of")}},
		{name: "no app label that could be", args: NetworkTopologyArgs{AppLabel: new("a b")},
			bad: []string{"args.appLabel", "pod label"}},
		{name: "a level nearer than the node", args: NetworkTopologyArgs{SameNodeMicroseconds: new(int64(6))},
			bad: []string{"levels[0].microseconds", "at least the 6"}},
		{name: "a wider level that is nearer",
			args: NetworkTopologyArgs{Levels: []NetworkLevel{level("rack", 10, "r"), level("zone", 9, "z")}},
			bad:  []string{"levels[1].microseconds"}},
		{name: "nothing shared, and nearer", args: NetworkTopologyArgs{Apart: &NetworkDistance{Microseconds: 100}},
			bad: []string{"apart.microseconds", "2200"}},
		{name: "a negative distance", args: NetworkTopologyArgs{SameNodeMicroseconds: new(int64(-1))},
			bad: []string{"sameNodeMicroseconds", "from 0"}},
		{name: "a name twice", args: NetworkTopologyArgs{Levels: []NetworkLevel{level("rack", 10, "a"),
			level("rack", 10, "b")}}, bad: []string{"levels[1].name", "Duplicate"}},
		{name: "a label twice", args: NetworkTopologyArgs{Levels: []NetworkLevel{level("rack", 10, "a"),
			level("zone", 10, "a")}}, bad: []string{"levels[1].labels[0]"}},
		{name: "no name", args: NetworkTopologyArgs{Levels: []NetworkLevel{level("", 10, "a")}},
			bad: []string{"levels[0].name"}},
		{name: "no labels", args: NetworkTopologyArgs{Levels: []NetworkLevel{level("rack", 10)}},
			bad: []string{"levels[0].labels", "Required"}},
		{name: "no label that could be", args: NetworkTopologyArgs{Levels: []NetworkLevel{level("rack", 10, "a b")}},
			bad: []string{"levels[0].labels[0]"}},
		{name: "too many levels", args: NetworkTopologyArgs{Levels: make([]NetworkLevel, 9)},
			bad: []string{"args.levels", "Too many"}},
		{name: "too much traffic", args: NetworkTopologyArgs{AppGiBPerHour: new(int64(1_000_001))},
			bad: []string{"appGiBPerHour"}},
		{name: "apps without traffic", args: NetworkTopologyArgs{AppGiBPerHour: new(int64(0))},
			bad: []string{"appGiBPerHour", "from 1"}},
	} {
		test.args.SetDefaults()
		err := test.args.Validate(field.NewPath("args"))
		if (err != nil) != (test.bad != nil) {
			t.Errorf("%s: got %v", test.name, err)
		}
		for _, text := range test.bad {
			if err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("%s: the error does not say %q: %v", test.name, text, err)
			}
		}
	}
}
