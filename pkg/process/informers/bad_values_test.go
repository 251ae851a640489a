package informers

import (
	"testing"

	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/assert"
)

func TestReporterReportsEachBadValueOnce(t *testing.T) {
	t.Parallel()
	r := &BadNodeValues{reported: map[string]map[string]bool{}}
	bad := func(value string) *wellknown.BadValue {
		return &wellknown.BadValue{Object: "node", Kind: "annotation", Key: wellknown.PricePerHourKey, Value: value,
			Allowed: "a number"}
	}
	for i, step := range []struct {
		node string
		bad  []*wellknown.BadValue
		want int
	}{
		{"a", []*wellknown.BadValue{bad("x")}, 1},
		{"a", []*wellknown.BadValue{bad("x")}, 0}, // a heartbeat, or another profile
		{"b", []*wellknown.BadValue{bad("x")}, 1}, // another node
		{"a", []*wellknown.BadValue{bad("y")}, 1}, // another value
		{"a", nil, 0}, // mended
		{"a", []*wellknown.BadValue{bad("y")}, 1},           // broken again
		{"a", []*wellknown.BadValue{bad("x"), bad("y")}, 1}, // one more
	} {
		if got := r.news(step.node, step.bad); len(got) != step.want {
			t.Errorf("step %d: %d messages %q, want %d", i, len(got), got, step.want)
		}
	}
	r.Forget("b")
	if got := r.news("b", []*wellknown.BadValue{bad("x")}); len(got) != 1 {
		t.Errorf("a node that was deleted and came back has %d messages, want 1", len(got))
	}
}

func TestABadValueSaysWhatFollows(t *testing.T) {
	t.Parallel()
	r := &BadNodeValues{reported: map[string]map[string]bool{}}
	got := r.news("a", []*wellknown.BadValue{
		{Object: "node", Kind: "label", Key: "a", Value: "x", Allowed: "y"},
		{Object: "node", Kind: "label", Key: "b", Value: "x", Allowed: "y", Effect: "no GPU is given out"},
	})
	want := []string{`node label a: "x" is not y; treated as absent`, `node label b: "x" is not y; no GPU is given out`}
	assert.Equal(t, "messages", want, got)
}
