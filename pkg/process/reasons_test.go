package process

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/test/harness/assert"
)

// full is a reason of a test.
type full struct{ need int }

func (f full) String() string { return fmt.Sprintf("node(s) were full (need %d)", f.need) }
func (f full) Kind() string   { return "node(s) were full" }

func TestReasons(t *testing.T) {
	t.Parallel()
	shared := ReasonError(full{3})
	for _, tc := range []struct {
		name   string
		status *fwk.Status
		words  []string
		kinds  []string
	}{
		{"a rejection may give none", fwk.NewStatus(fwk.Unschedulable), nil, nil},
		{"a value comes out as it went in", Reject(fwk.Unschedulable, full{2}), []string{"node(s) were full (need 2)"},
			[]string{"node(s) were full"}},
		{"a copy keeps the value", Reject(fwk.Unschedulable, full{2}).Clone(), []string{"node(s) were full (need 2)"},
			[]string{"node(s) were full"}},
		{"a value may be worded before", fwk.NewStatus(fwk.Unschedulable).WithError(shared),
			[]string{"node(s) were full (need 3)"}, []string{"node(s) were full"}},
		{"each text of a stock plugin counts", fwk.NewStatus(fwk.Unschedulable, "Insufficient cpu", "Too many pods"),
			[]string{"Insufficient cpu", "Too many pods"}, []string{"Insufficient cpu", "Too many pods"}},
		{"an error that is no reason is its text", fwk.AsStatus(errors.New("no connection")), []string{"no connection"},
			[]string{"no connection"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var words, kinds []string
			for r := range Reasons(tc.status) {
				words, kinds = append(words, r.String()), append(kinds, r.Kind())
			}
			assert.Equal(t, "words", tc.words, words)
			assert.Equal(t, "kinds", tc.kinds, kinds)
			if want := strings.Join(tc.words, ", "); tc.status.Message() != want {
				t.Errorf("the framework tells users %q, want %q", tc.status.Message(), want)
			}
		})
	}
}
