package subject

import (
	"slices"
	"strings"
	"testing"
)

// FuzzParseTarget reads what is typed behind the command: a kind that is explained, and the same object in each form.
func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"", "pod p", "pod/p", "pods/p", "pod p q", "sts/a sts/b", "deploy deploy/a", "pg a/b",
		"pod/", "JOB x", "/", "pod pod/a/b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		target, err := ParseTarget(strings.Fields(line))
		if err != nil {
			return
		}
		if !slices.Contains(Kinds(), target.Kind) {
			t.Fatalf("%q is read as the kind %q", line, target.Kind)
		}
		if target.Name == "" {
			return
		}
		again, err := ParseTarget([]string{target.Kind + "/" + target.Name})
		if err != nil || again != target {
			t.Fatalf("%q is read as %+v, and that as %+v (%v)", line, target, again, err)
		}
	})
}
