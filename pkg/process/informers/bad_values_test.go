package informers

import (
	"testing"

	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/assert"
)

func TestReporterReportsEachBadValueOnce(t *testing.T) {
	t.Parallel()
	r := &badValueReporter{reported: map[reportKey]map[string]bool{}}
	bad := func(value string) *wellknown.BadValue {
		return &wellknown.BadValue{Object: "node", Kind: "annotation", Key: wellknown.PricePerHourKey, Value: value,
			Allowed: "a number"}
	}
	for i, step := range []struct {
		scope, node string
		bad         []*wellknown.BadValue
		want        int
	}{
		{"price", "a", []*wellknown.BadValue{bad("x")}, 1},
		{"price", "a", []*wellknown.BadValue{bad("x")}, 0},           // a heartbeat, or another profile
		{"price", "b", []*wellknown.BadValue{bad("x")}, 1},           // another node
		{"gpu", "a", []*wellknown.BadValue{bad("x")}, 1},             // another plugin
		{"price", "a", []*wellknown.BadValue{bad("y")}, 1},           // another value
		{"price", "a", nil, 0},                                       // mended
		{"price", "a", []*wellknown.BadValue{bad("y")}, 1},           // broken again
		{"price", "a", []*wellknown.BadValue{bad("x"), bad("y")}, 1}, // one more
	} {
		if got := r.news(step.scope, step.node, step.bad); len(got) != step.want {
			t.Errorf("step %d: %d messages %q, want %d", i, len(got), got, step.want)
		}
	}
	r.forget("price", "b")
	if got := r.news("price", "b", []*wellknown.BadValue{bad("x")}); len(got) != 1 {
		t.Errorf("a node that was deleted and came back has %d messages, want 1", len(got))
	}
}

func TestABadValueSaysWhatFollows(t *testing.T) {
	t.Parallel()
	r := &badValueReporter{reported: map[reportKey]map[string]bool{}}
	got := r.news("gpu", "a", []*wellknown.BadValue{
		{Object: "node", Kind: "label", Key: "a", Value: "x", Allowed: "y"},
		{Object: "node", Kind: "label", Key: "b", Value: "x", Allowed: "y", Effect: "no GPU is given out"},
	})
	want := []string{`node label a: "x" is not y; treated as absent`, `node label b: "x" is not y; no GPU is given out`}
	assert.Equal(t, "messages", want, got)
}
