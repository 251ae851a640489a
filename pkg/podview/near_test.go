package podview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"berth.dev/berth/pkg/wellknown"
)

func nearPod(value string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{wellknown.NearKey: value}}}
}

func TestPodNamesWhatItTalksTo(t *testing.T) {
	t.Parallel()
	type near struct {
		Selector   string
		KiBPerHour int64
	}
	for _, test := range []struct {
		name, value string
		want        []near
		bad         string
	}{
		{name: "one selector", value: "app=cache", want: []near{{"app=cache", 0}}},
		{name: "a selector with traffic", value: "app=cache 20GiB/h", want: []near{{"app=cache", 20 << 20}}},
		{name: "traffic with a space and a fraction", value: "app=cache 0.5 GiB/h", want: []near{{"app=cache", 1 << 19}}},
		{name: "several, one with two requirements", value: "app=cache,tier=hot 2GiB/h;app in (queue, log) ",
			want: []near{{"app=cache,tier=hot", 2 << 20}, {"app in (log,queue)", 0}}},
		{name: "requirements are sorted", value: "b=2,a=1", want: []near{{"a=1,b=2", 0}}},
		{name: "a label that only has to be there", value: "cache", want: []near{{"cache", 0}}},
		{name: "nothing", value: "", bad: "item 1 selects all pods"},
		{name: "an empty item", value: "app=cache;", bad: "item 2 selects all pods"},
		{name: "an empty value", value: "app=", want: []near{{"app=", 0}}},
		{name: "what is none", value: "app=ca che", bad: "see item 1"},
		{name: "traffic alone", value: "20GiB/h", bad: "see item 1"},
		{name: "the wrong unit", value: "app=cache 20GB/h", bad: "see item 1"},
		{name: "no unit", value: "app=cache 20", bad: "see item 1"},
		{name: "negative traffic", value: "app=cache -1GiB/h", bad: "see item 1"},
		{name: "no traffic", value: "app=cache 0GiB/h", bad: "more than 0"},
		{name: "less than can be counted", value: "app=cache 0.0000000001GiB/h", bad: "more than 0"},
		{name: "too much traffic", value: "app=cache 1000001GiB/h", bad: "at most 1000000"},
		{name: "far too much traffic", value: "app=cache 1" + strings.Repeat("0", 400) + "GiB/h", bad: "at most 1000000"},
		{name: "the same twice", value: "a=1,b=2;b=2,a=1 3GiB/h", bad: "item 2 repeats"},
		{name: "too many", value: strings.Repeat("a=1;", 8) + "a=1", bad: "at most 8"},
		{name: "as many requirements as there may be", value: "a,b,c,d,e,f,g,h in (i,j,k)",
			want: []near{{"a,b,c,d,e,f,g,h in (i,j,k)", 0}}},
		{name: "too many requirements", value: "a;b,c,d,e,f,g,h,i,j", bad: "at most 8 requirements each: see item 2"},
		{name: "too long", value: "a in (" + strings.Repeat("x,", 2048) + "x)", bad: "at most 4096 characters"},
	} {
		got, bad := PodNear(nearPod(test.value))
		if test.bad != "" {
			if bad == nil || !strings.Contains(bad.Error(), test.bad) || !strings.Contains(bad.Error(), wellknown.NearKey) {
				t.Errorf("%s: got %v, want an error with %q", test.name, bad, test.bad)
			}
			continue
		}
		if bad != nil {
			t.Errorf("%s: %v", test.name, bad)
			continue
		}
		var seen []near
		for _, n := range got {
			seen = append(seen, near{n.Selector, n.KiBPerHour})
		}
		if diff := cmp.Diff(test.want, seen); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	if near, bad := PodNear(&v1.Pod{}); near != nil || bad != nil {
		t.Errorf("a pod that says nothing is near %v, %v", near, bad)
	}
}

func TestLabelValuesOfNearAreReplaced(t *testing.T) {
	t.Parallel()
	upper := func(key, value string) string { return strings.ToUpper(key + "-" + value) }
	for value, want := range map[string]string{
		"app=cache 20GiB/h; tier in (hot,warm)": "app=APP-CACHE 20GiB/h; tier in (TIER-HOT,TIER-WARM)",
		"cache":                                 "cache",
		"size>3 0.5GiB/h":                       "size>3 0.5GiB/h",
		"se cret":                               "",
	} {
		if got := MapNear(value, upper); got != want {
			t.Errorf("%q becomes %q, want %q", value, got, want)
		}
	}
}

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

func FuzzNear(f *testing.F) {
	for _, seed := range []string{"app=cache 20GiB/h; app in (a, b)", "!x", ";", "a=1 1GiB/h 2GiB/h", "a>5", "x=\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		near, bad := PodNear(nearPod(value))
		if bad != nil {
			return
		}
		same := MapNear(value, func(_, value string) string { return value })
		again, bad := PodNear(nearPod(same))
		if bad != nil {
			t.Fatalf("%q becomes %q, which cannot be read: %v", value, same, bad)
		}
		if diff := cmp.Diff(near, again,
			cmp.Comparer(func(a, b labels.Selector) bool { return a.String() == b.String() })); diff != "" {
			t.Fatalf("%q becomes %q (-want +got):\n%s", value, same, diff)
		}
	})
}
