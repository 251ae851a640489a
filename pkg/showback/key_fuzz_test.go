package showback

import (
	"regexp"
	"testing"
)

// qualifiedName is what the API server takes as the key of a label.
var qualifiedName = regexp.MustCompile(
	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// FuzzParseBy reads by what pods are told apart: no label that Kubernetes would refuse, and what is read is written as
// it was.
func FuzzParseBy(f *testing.F) {
	for _, s := range []string{"namespace", "gang", "label=team", "label=example.com/team", "label=", "label=/a",
		"label=a/b/c", "label=-a", "label=a..b/c", "Namespace"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		by, err := ParseBy(text)
		if err != nil {
			return
		}
		if by.String() != text {
			t.Fatalf("%q is read as %q", text, by)
		}
		if by.label != "" && !qualifiedName.MatchString(by.label) {
			t.Fatalf("%q is the key of no label", by.label)
		}
		if key := by.Key(Pod{Namespace: "a", Gang: "g", Labels: map[string]string{by.label: "x"}}); key == "" || key == None {
			t.Fatalf("by %q a pod has the key %q", text, key)
		}
	})
}
