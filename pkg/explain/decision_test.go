package explain

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/process/decisions"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func subject(name string) decisions.Subject {
	return decisions.Subject{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
}

func TestTheFirstPodOfWhichADecisionIsRememberedIsExplained(t *testing.T) {
	t.Parallel()
	list := &decisions.List{Kept: 10,
		Items: []decisions.Decision{{Time: noon, Pod: subject("p").NamespacedName, UID: "p", Node: "a",
			ChosenBy: "Coscheduling"}, {Time: noon, Pod: subject("q").NamespacedName, UID: "q", Node: "b"}}}
	for _, tt := range []struct {
		of   []decisions.Subject
		want string
	}{
		{[]decisions.Subject{subject("p")}, "default/p bound Coscheduling left the pod no other node than a."},
		{[]decisions.Subject{subject("x"), subject("q"), subject("p")},
			"default/q bound b was the only node that was found to fit."},
		{[]decisions.Subject{subject("x")}, "the scheduler remembers no decision about pod default/x: it keeps the last 10"},
		{[]decisions.Subject{subject("x"), subject("y")},
			"the scheduler remembers no decision about pod default/x and 1 other:"},
	} {
		e, err := Past(list, tt.of...)
		var got string
		if err != nil {
			got = err.Error()
		} else {
			got = e.Pod.String() + " " + e.State + " " + e.Verdict
		}
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%v: got %q, want %q first", tt.of, got, tt.want)
		}
	}
}
