package advise

import (
	"strings"
	"testing"
)

// FuzzParseTarget reads pods and PodGroups as they are typed.
func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"pod/p", "podgroup/g", "pod/", "pod/a/b", "job/x", "", "/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := ParseTarget(text, "default")
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("the error is more than a line: %q", err)
			}
			return
		}
		if target.Kind+"/"+target.Name != text || target.Namespace != "default" {
			t.Fatalf("%q is read as %+v", text, target)
		}
	})
}
