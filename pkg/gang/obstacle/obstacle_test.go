package obstacle

import (
	"strings"
	"testing"
)

type name string

func (n name) String() string { return string(n) }

// TestObstaclesOfOneKindDifferInNamesAndAmountsAlone checks every cause: its kind has words, which no other cause has,
// and which name nothing of the obstacle; the sentence names what it is about.
func TestObstaclesOfOneKindDifferInNamesAndAmountsAlone(t *testing.T) {
	t.Parallel()
	seen := map[string]Cause{}
	for cause := range causes {
		o := Obstacle{Cause: cause, Group: name("ns/one"), Pod: "pod-0", Node: "node-0", Have: 41, Need: 42, Timeout: 43,
			Detail: "told-0"}
		kind := o.Kind()
		if other, known := seen[kind]; kind == "" || known {
			t.Errorf("cause %d has the kind %q, and so has cause %d", cause, kind, other)
		}
		seen[kind] = cause
		for _, word := range []string{"ns/one", o.Pod, o.Node, o.Detail, "41", "42", "43"} {
			if strings.Contains(kind, word) {
				t.Errorf("cause %d: the kind %q names %q", cause, kind, word)
			}
		}
		if cause != Unknown && cause != NotPending && o.String() == kind {
			t.Errorf("cause %d: the sentence %q names nothing", cause, o)
		}
	}
}
